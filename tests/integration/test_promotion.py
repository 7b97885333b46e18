"""The pipeline's end: a version is promoted if it is better on the same held-out rows, and if a person agrees; and back again."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterKey,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateName,
)
from prefect.client.schemas.sorting import ArtifactSort
from prefect.flow_engine import run_flow
from prefect.input import read_flow_run_input
from prefect.states import AwaitingRetry, Crashed
from ray.util import placement_group_table

from tests.integration.test_runs_in_the_registry import opened
from trainlib import DataParallelTrainer
from trainlib._registry.aliases import AliasMove
from trainlib._registry.models import Selection, register_version, take_alias
from trainlib._registry.promotion import Candidate, Decision
from trainlib._training.evaluating import Evaluation
from trainlib.errors import ModelNotFoundError
from trainlib.flows import Approval, pipeline, rollback
from trainlib.flows import _embedded as embedded
from trainlib.flows._promoting import Promotion

# A model is the score that it was told to have: on validation rows, and on any other.
CODE = """
    from trainlib import Checkpoint, report, trainable

    @trainable
    def train(config):
        for step in (1, 2):
            score = config["score"] * step / 2
            model = {"score": score, "says": config.get("says", score), "target": config["target"]}
            report({"accuracy": score}, checkpoint=Checkpoint.from_dict(model))

    @trainable
    def evaluate(checkpoint, dataset):
        model = checkpoint.to_dict()
        table = dataset.to_pandas()
        print(f"evaluating on {sorted(table['id'])}")
        assert abs(table["x"].mean()) < 3, "scaled by the preprocessor of the checkpoint"
        return {"accuracy": model["says"], "rows": len(table)}
"""


def write_rows(folder: str, rows: int) -> None:
    table = pd.DataFrame({"id": [f"row {i}" for i in range(rows)], "x": [1000.0 + i for i in range(rows)]})
    table.assign(label=[i % 2 for i in range(rows)]).to_csv(f"{folder}/rows.csv", index=False)


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> Iterator[str]:
    """The user's module, and the file of data beside it."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "scores.py").write_text(textwrap.dedent(CODE))
    write_rows(str(folder), 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        embedded.start()
        embedded.wait()
        yield str(folder)


def parameters(folder: str, model: str, score: float, *, evaluate: bool = True, says: Any = None, **more: Any) -> Any:
    """Those of a pipeline whose model has this score in validation, and says another one of itself."""
    config = {"score": score, **({"says": says} if says is not None else {})}
    return {
        "source": f"{folder}/rows.csv",
        "target": "label",
        "steps": [{"name": "StandardScaler", "columns": ["x"]}],
        "split": {"test_size": 0.2},
        "trainer": {"kind": "function", "train_loop": "scores:train", "train_loop_config": config},
        "evaluate": "scores:evaluate" if evaluate else "",
        "model_name": model,
        **more,
    }


def last_artifact(key: str) -> str:
    """What the newest artifact of a key says."""
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(
            artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])), sort=ArtifactSort.CREATED_DESC, limit=1
        )
    return str(found[0].data)


class Asked:
    """Waits until a flow run is Paused, and answers as a person does who resumes it in Prefect's UI."""

    def __init__(self, answer: str | None, before: Callable[[], object] = lambda: None) -> None:
        self._answer = answer
        self._before = before
        self._over = threading.Event()
        self._problem: BaseException | None = None
        self.question = ""
        self.states: list[str] = []
        self.groups: list[Any] = []
        """The gangs that were reserved when it was asked."""

    @contextmanager
    def answering(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
        assert self._problem is None, self._problem

    def _watch(self) -> None:
        try:
            with get_client(sync_client=True) as client:
                self._wait_and_answer(client)
        except BaseException as problem:
            self._problem = problem

    def _wait_and_answer(self, client: Any) -> None:
        paused = FlowRunFilter(state=FlowRunFilterState(name=FlowRunFilterStateName(any_=["Paused"])))
        while not (runs := client.read_flow_runs(flow_run_filter=paused)):
            if self._over.wait(0.1):
                return
        [run] = runs
        keys = run.state.state_details.run_input_keyset
        deadline = time.monotonic() + 10
        while not (question := read_flow_run_input(keys["description"], flow_run_id=run.id)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        self.question = str(question)
        self.groups = [each for each in placement_group_table().values() if each["state"] == "CREATED"]
        self._before()
        if self._answer is not None:
            client.resume_flow_run(run.id, run_input={"promote": self._answer})
        self._over.wait(60)
        self.states = [state.name for state in client.read_flow_run_states(run.id)]


def test_only_what_is_better_on_the_same_rows_is_promoted(module, registry):
    def holder() -> int:
        return int(registry.get_model_version_by_alias("scores", "best").version)

    first = pipeline(**parameters(module, "scores", 0.9, says=0.6))
    assert (first.version.version, first.decision.verdict.name, holder()) == ("1", "FIRST", 1)
    assert first.held_out is not None
    assert first.held_out.metrics == {"accuracy": 0.6, "rows": 8}
    worse = pipeline(**parameters(module, "scores", 1.0, says=0.5))
    assert (worse.version.version, worse.decision.verdict.name, holder()) == ("2", "NOT_BETTER", 1)
    assert (worse.decision.new, worse.decision.old) == (0.5, 0.6), "what the trainings reported does not count"

    # Other rows, so that the version that has the alias is evaluated on them, too; a sweep; and a person who agrees.
    write_rows(module, 50)
    asked = Asked("yes")
    with asked.answering():
        space = {"train_loop_config": {"says": {"grid_search": [0.8, 0.7]}}}
        approval = Approval(required=True)
        better = pipeline(**parameters(module, "scores", 0.1, param_space=space, approval=approval))
    assert asked.groups == [], "nobody trains while a person is asked"
    assert "**0.8**" in asked.question
    assert "| `best` now | 1 | 0.6 |" in asked.question
    assert (better.version.version, better.decision.verdict.name, holder()) == ("3", "BETTER", 3)
    assert better.held_out is not None
    assert better.held_out.metrics["rows"] == 10
    assert (better.decision.new, better.decision.old, better.decision.basis.name) == (0.8, 0.6, "HELD_OUT")
    assert better.best == {"train_loop_config": {"says": 0.8}}
    tags = registry.get_model_version("scores", "3").tags
    assert (tags["trainlib.test.accuracy"], tags["trainlib.metric.accuracy"]) == ("0.8", "0.1")
    summary = last_artifact("pipeline-summary")
    for part in (
        "scores version 3: promoted",
        "| train_loop_config.says (best of the sweep) | `0.8` |",
        "/#/models/scores/versions/3",
    ):
        assert part in summary

    # And back again, as often as there is a version before.
    assert rollback("scores").move == AliasMove("scores", "best", "1", "3")
    assert holder() == 1
    assert "points to version 1 again; it pointed to version 3" in last_artifact("rollback")
    nothing = rollback("scores", return_state=True)
    assert nothing.is_completed()
    assert "nothing to roll back" in nothing.message
    assert holder() == 1
    with pytest.raises(ModelNotFoundError, match="no registered model is called 'scroes'"):
        rollback("scroes")


@pytest.fixture
def versions(registry) -> Callable[..., list[str]]:
    """Makes versions of a model with these scores. They have no files."""
    run = opened(None)
    run.close("FINISHED")

    def make(name: str, *scores: float) -> list[str]:
        made = []
        for score in scores:
            model = registry.create_logged_model(run.experiment_id, source_run_id=run.run_id).model_id
            made.append(register_version(Selection(run.run_id, model, "/gone", 1, "accuracy", "max", score), name))
        return made

    return make


@flow(persist_result=False)
def promotion(model: str, version: str, score: float, within_s: float) -> Decision:
    return Promotion(model, "best", "accuracy", "max", None, within_s).of(Candidate(version, score), print)


def test_a_version_that_cannot_be_evaluated_any_more_counts_with_what_was_recorded(registry, versions):
    embedded.start()
    embedded.wait()
    old, new = versions("gone", 0.5, 0.9)
    assert take_alias("gone", "best", old, None)
    said: list[str] = []

    @flow(persist_result=False)
    def promoting() -> Decision:
        evaluation = Evaluation(lambda checkpoint, dataset: {}, "/no/rows", DataParallelTrainer(print))
        promotion = Promotion("gone", "best", "accuracy", "max", evaluation, None)
        return promotion.of(Candidate(new, 0.9, held_out=0.4), said.append)

    decision = promoting()
    assert (decision.verdict.name, decision.basis.name, decision.new, decision.old) == ("BETTER", "REPORTED", 0.9, 0.5)
    assert decision.why_not is not None
    assert "no checkpoint at /gone" in decision.why_not
    assert f"version {old}, which has the alias, could not be evaluated: no checkpoint at /gone" in said[0]
    assert registry.get_model_version_by_alias("gone", "best").version == int(new)


def test_in_an_empty_registry_there_is_nothing_to_roll_back(tmp_path, monkeypatch):
    embedded.start()
    embedded.wait()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    state = rollback("digits", return_state=True)
    assert state.is_completed()
    assert state.message == "There is nothing to roll back: no model is registered yet."
    assert state.result().move is None


@pytest.mark.parametrize(("answer", "verdict"), [("yes", "BETTER"), ("no", "DECLINED"), (None, "UNANSWERED")])
def test_a_person_decides_and_without_an_answer_nothing_is_promoted(registry, versions, answer, verdict):
    embedded.start()
    embedded.wait()
    model = f"asked-{verdict}"
    old, new = versions(model, 0.5, 0.9)
    assert take_alias(model, "best", old, None)
    asked = Asked(answer)
    with asked.answering():
        state = promotion(model, new, 0.9, 60.0 if answer else 3.0, return_state=True)
    assert state.is_completed()
    assert state.result().verdict.name == verdict
    assert (state.result().new, state.result().old) == (0.9, 0.5)
    assert registry.get_model_version_by_alias(model, "best").version == int(new if answer == "yes" else old)
    assert len(registry.search_model_versions(f"name = '{model}'")) == 2, "the new version stays registered"
    assert asked.states[-3:-1] == ["Paused", "Running"], asked.states


def test_a_version_that_somebody_promotes_meanwhile_is_compared_with_as_well(registry, versions):
    embedded.start()
    embedded.wait()
    old, new, newer = versions("asked-twice", 0.5, 0.9, 0.95)
    assert take_alias("asked-twice", "best", old, None)
    asked = Asked("yes", before=lambda: take_alias("asked-twice", "best", newer, old))
    with asked.answering():
        decision = promotion("asked-twice", new, 0.9, 60.0)
    assert (decision.verdict.name, decision.champion, decision.old) == ("NOT_BETTER", newer, 0.95)
    assert registry.get_model_version_by_alias("asked-twice", "best").version == int(newer)


KILLED = """
    import os, signal, sys
    from uuid import UUID
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow
    from trainlib.flows import pipeline
    from trainlib.flows import _promoting

    _promoting.find_holder = lambda *of_what: os.kill(os.getpid(), signal.SIGKILL)
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(UUID(sys.argv[1]))
    run_flow(pipeline, flow_run=run, parameters=run.parameters)
"""


def test_a_run_that_is_killed_before_it_promotes_goes_on_and_registers_nothing_twice(module, registry, driver):
    """It is started and retried as a deployment does it."""
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(pipeline, parameters=parameters(module, "killed", 0.5, evaluate=False))
        process = driver(KILLED, str(run.id), PYTHONPATH=os.pathsep.join([module, *sys.path]))
        assert process.wait() == -signal.SIGKILL, process.output
        [version] = registry.search_model_versions("name = 'killed'")
        assert not registry.get_registered_model("killed").aliases
        assert version.tags["trainlib.metric.accuracy"] == "0.5", "it is complete"
        client.set_flow_run_state(run.id, Crashed(), force=True)
        client.set_flow_run_state(run.id, AwaitingRetry(), force=True)
        result = run_flow(pipeline, flow_run=client.read_flow_run(run.id), parameters=run.parameters)
    assert result.decision.verdict.name == "FIRST"
    assert [each.version for each in registry.search_model_versions("name = 'killed'")] == [version.version]
    assert registry.get_model_version_by_alias("killed", "best").version == version.version
    assert result.training.run_id == version.run_id
    assert result.training.attempts == 1, "what was trained is not trained again"
    assert registry.get_run(version.run_id).info.status == "FINISHED"
