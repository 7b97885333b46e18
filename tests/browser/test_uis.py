"""What people do in the UIs of a platform, in a real browser. One platform and one browser see all of it, in this order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.mlflow_ui import Mlflow
from tests.browser.prefect_ui import ENDED, Prefect, Ui
from tests.browser.screenshots import Screenshots
from trainlib.deployments.listed import listed

DEPLOYMENTS = [each.name for each in listed()]

# The value that is changed in each form, by label.
CHANGED: dict[str, tuple[str, str | int]] = {
    "train": ("name", "by hand"),
    "sweep": ("num samples", 3),
    "pipeline": ("num workers", 1),
    "predict": ("batch size", 256),
    "preprocess": ("source", "demo://digits/train"),
    "nightly": ("alias", "tonight"),
    "rollback": ("alias", "tonight"),  # which has one version: nothing is moved
    "resume": ("num workers", 1),
    "fork": ("name", "forked by hand"),
    "retention": ("keep", 2),
}
# In the older UI. All others are filled in and submitted in the newer one.
OLD_UI = ("preprocess", "nightly", "rollback", "resume", "fork", "retention")
# The longest that a run of an untouched form may take.
RUN_S = 120.0

# A module of the user's, whose training goes on until a file exists.
SLOWLY = """
import os, time
import trainlib
from trainlib import Checkpoint, session

@trainlib.trainable
def train(config):
    found = session.get_checkpoint()
    step = found.to_dict()["step"] + 1 if found else 0
    while step < config["num_epochs"] and not os.path.exists(config["until"]):
        score = step / (step + 1)
        session.report({"loss": 1 - score, "accuracy": score}, checkpoint=Checkpoint.from_dict({"step": step}))
        time.sleep(0.5)
        step += 1
"""


# What the slow run is called: its name, and who trains.
NAME = "slow · 1 worker"


@pytest.fixture(scope="module")
def may_end(home: Path) -> Path:
    """The file with which the slow run ends."""
    return home / "may-end"


@pytest.fixture(scope="module")
def slow_run(prefect: Prefect, home: Path, may_end: Path) -> str:
    """A training that goes on until it may end, started by its form."""
    (home / "slowly.py").write_text(SLOWLY)
    form = prefect.open_form("train")
    form.choose_kind("trainer", "DataParallel")
    form.fill("train loop", "slowly:train")
    form.fill_json("train loop config", {"num_epochs": 1000, "until": str(may_end)})
    form.fill_json("datasets", {})
    form.fill("num workers", 1)
    form.fill("name", "slow")
    return form.submit()


ITERATION = re.compile(r"iteration (\d+)")


def wait_for_progress(prefect: Prefect, run_id: str, *, beyond: int = 0) -> int:
    """Return when the page of a run's progress artifact shows that the run is further than an iteration. Gives how far it is.

    Fails if the run is over. The page is opened once the server knows of it: opening it takes longer than an iteration.
    """

    def is_further() -> bool:
        assert prefect.run(run_id)["state"]["name"] not in ENDED, prefect.account(run_id)
        artifact = prefect.artifacts(run_id).get("training-progress", {})
        known = ITERATION.search(artifact.get("description") or "")
        return known is not None and int(known[1]) > beyond

    prefect.wait_until(is_further, 60, lambda: prefect.account(run_id))
    prefect.open_artifact(run_id, "training-progress")
    shown = ITERATION.search(prefect.page.get_by_text(ITERATION).first.inner_text())
    assert shown is not None
    assert int(shown[1]) > beyond
    return int(shown[1])


def test_the_progress_of_a_run_moves(prefect: Prefect, slow_run: str, screenshots: Screenshots):
    first = wait_for_progress(prefect, slow_run)
    wait_for_progress(prefect, slow_run, beyond=first)
    prefect.open_run(slow_run, tab="Artifacts")
    expect(prefect.page.get_by_text("training-progress")).to_be_visible()
    screenshots.take("prefect-run", settle_s=2.0)


def test_a_run_is_suspended_resumed_cancelled_and_retried_as_one_training(
    prefect: Prefect, mlflow: Mlflow, slow_run: str, may_end: Path
):
    page = prefect.page
    reached = wait_for_progress(prefect, slow_run)
    prefect.wait_until(lambda: prefect.run(slow_run)["name"] == NAME)
    prefect.act(slow_run, "Pause")  # which the older UI, and the state, call Suspend
    prefect.wait_until(lambda: "Resume goes on" in (prefect.run(slow_run)["state"]["message"] or ""))
    expect(page.get_by_text("Suspended", exact=True).first).to_be_visible()

    prefect.act(slow_run, "Resume")
    assert prefect.wait_for(slow_run, "Running")["name"] == NAME, "a run that goes on keeps its name"
    reached = wait_for_progress(prefect, slow_run, beyond=reached)
    prefect.act(slow_run, "Cancel")
    prefect.wait_for(slow_run, "Cancelled", timeout_s=30)
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()

    prefect.act(slow_run, "Retry")
    prefect.wait_for(slow_run, "Running")
    wait_for_progress(prefect, slow_run, beyond=reached)
    may_end.touch()
    prefect.wait_for(slow_run, "Completed")
    (recorded,) = mlflow.runs("attributes.run_name = 'slow'")
    steps = mlflow.steps(recorded["info"]["run_id"], "loss")
    assert steps == list(range(1, len(steps) + 1)), "one curve, without a gap, and no point twice"


def test_links_lead_from_prefect_to_mlflow_and_back(
    prefect: Prefect, mlflow: Mlflow, slow_run: str, screenshots: Screenshots
):
    page = prefect.page
    prefect.open_artifact(slow_run, "training-report")
    expect(page.get_by_role("img", name="loss")).to_be_visible()
    screenshots.take("prefect-report")
    page.get_by_role("link", name=re.compile("in MLflow")).first.click()
    mlflow.wait_for_run()
    assert "workflowType=machine_learning" in page.url
    with page.expect_popup() as opened:
        page.get_by_role("link", name=re.compile("Prefect flow run")).click()
    back = opened.value
    expect(back.get_by_text("slow", exact=False).first).to_be_visible()
    assert f"/runs/flow-run/{slow_run}" in back.url
    back.close()
    curves = mlflow.open_charts()
    expect(curves.first.locator("path.js-line").first).to_be_attached()
    screenshots.take("mlflow-charts")


@dataclass
class Submitted:
    """What became of the forms, by deployment."""

    runs: dict[str, str] = field(default_factory=dict)
    refused: dict[str, AssertionError] = field(default_factory=dict)


@pytest.fixture(scope="module")
def submitted(prefect: Prefect, slow_run: str, screenshots: Screenshots) -> Submitted:
    """A run of every deployment, started by its form with one value changed."""
    forms = Submitted()
    assert set(CHANGED) == set(DEPLOYMENTS)
    for name, (label, value) in CHANGED.items():
        form = prefect.open_form(name, Ui.OLD if name in OLD_UI else Ui.NEW)
        if name == "train":
            screenshots.take("prefect-form")
        form.fill(label, value)
        try:
            assert "[object Object]" not in form.text()
            forms.runs[name] = form.submit()
            prefect.leave()
            # One after the other: a small machine has no room for two trainings that read data.
            prefect.wait_for(forms.runs[name], *ENDED, timeout_s=RUN_S)
        except AssertionError as error:  # the test of that form raises it; the others are tested all the same
            forms.refused[name] = error
    return forms


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_form_starts_a_run_that_completes(prefect: Prefect, submitted: Submitted, name: str):
    if name in submitted.refused:
        raise submitted.refused[name]
    run = prefect.wait_for(submitted.runs[name], "Completed", timeout_s=RUN_S)
    assert run["total_run_time"] < RUN_S
    label, value = CHANGED[name]
    assert run["parameters"][label.replace(" ", "_")] == value


def test_a_bad_value_is_refused_by_the_form_which_shows_all_trainers(prefect: Prefect):
    form = prefect.open_form("train")
    expect(form.kinds("trainer").last).to_have_text("RL")
    expect(form.kinds("trainer").last).to_be_in_viewport(ratio=1)
    form.fill("num workers", 0)
    prefect.page.get_by_role("button", name="Submit").click()
    assert form.refusal("num workers") == "Value must be greater than or equal to 1."
    assert prefect.page.url.endswith("/run"), "it is still there to be corrected"


def test_trials_of_a_sweep_are_compared_in_mlflow(
    prefect: Prefect, mlflow: Mlflow, submitted: Submitted, screenshots: Screenshots
):
    page = prefect.page
    prefect.wait_for(submitted.runs["sweep"], "Completed", timeout_s=RUN_S)
    prefect.open_artifact(submitted.runs["sweep"], "mlflow-run")
    page.get_by_role("link", name=re.compile("^MLflow")).click()
    expect(mlflow.rows("trial 0")).not_to_have_count(0)
    expect(mlflow.rows("trial 2")).not_to_have_count(0)
    screenshots.take("mlflow-sweep")
    mlflow.compare_all()
    expect(page.get_by_text(re.compile(r"Comparing \d Runs")).first).to_be_visible()
    expect(mlflow.charts.first).to_be_visible()
    screenshots.take("mlflow-compare")
