"""Prefect's two UIs, as a person uses them: forms, and the page of a run.

Prefect serves both: the newer one below ``/v2``, where ``/`` leads to, and the older one below ``/``. Their pages differ, and what
a person does on them does not.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from playwright.sync_api import Locator, Page

from tests.longest import LONGEST_S

__all__ = ["ENDED", "Form", "Prefect", "Ui"]

ENDED = ("Completed", "Failed", "Crashed", "Cancelled")
"""The names of the states of runs that are over."""

_LOOK_S = 0.5


class Ui(Enum):
    """One of Prefect's UIs."""

    OLD = ""
    """The one that links of earlier versions lead to."""
    NEW = "/v2"
    """The one that opens by default."""


# The part of a form for one field, and its label in there.
_PROPERTY = {Ui.OLD: ".schema-form-property", Ui.NEW: "form div.group"}
_LABEL = {Ui.OLD: ".schema-form-property__label", Ui.NEW: "label"}


@dataclass(frozen=True)
class Prefect:
    """A Prefect server, in a browser."""

    page: Page
    address: str

    def ask(self, path: str, **question: Any) -> Any:
        """What the server's API answers; with a question, to a POST."""
        url = f"{self.address}/api/{path}"
        answer = self.page.request.post(url, data=question) if question else self.page.request.get(url)
        assert answer.ok, f"{url}: {answer.status} {answer.text()}"
        return answer.json()

    def deployments(self) -> dict[str, dict[str, Any]]:
        """All deployments, by name."""
        return {each["name"]: each for each in self.ask("deployments/filter", limit=200)}

    def run(self, run_id: str) -> dict[str, Any]:
        """A flow run, as the server knows it."""
        return self.ask(f"flow_runs/{run_id}")

    def artifacts(self, run_id: str) -> dict[str, dict[str, Any]]:
        """The newest artifact of each key of a flow run."""
        found = self.ask("artifacts/filter", artifacts={"flow_run_id": {"any_": [run_id]}}, sort="CREATED_DESC")
        return {each["key"]: each for each in reversed(found)}

    def wait_for(self, run_id: str, *names: str, timeout_s: float = LONGEST_S) -> dict[str, Any]:
        """A run, once it is in one of these states. Fails if it is over, and in none of them."""

        def has_arrived() -> bool:
            name = self.run(run_id)["state"]["name"]
            assert name in names or name not in ENDED, self.account(run_id)
            return name in names

        self.wait_until(has_arrived, timeout_s, lambda: self.account(run_id))
        return self.run(run_id)

    def wait_until(
        self, what: Callable[[], Any], timeout_s: float = LONGEST_S, why: Callable[[], str] = lambda: "waited too long"
    ) -> None:
        """Return when something is so. The browser goes on meanwhile, as it would not in a ``time.sleep``."""
        deadline = time.monotonic() + timeout_s
        while not what():
            assert time.monotonic() < deadline, why()
            self.page.wait_for_timeout(1000 * _LOOK_S)

    def account(self, run_id: str) -> str:
        """What is known of a run, for the message of a test that fails."""
        run = self.run(run_id)
        logs = self.ask("logs/filter", logs={"flow_run_id": {"any_": [run_id]}}, sort="TIMESTAMP_ASC", limit=200)
        lines = [
            f"{run['name']} is {run['state']['name']}: {run['state']['message']}",
            *(log["message"] for log in logs),
        ]
        return "\n".join(lines[:1] + lines[-30:])

    def open_form(self, deployment: str, ui: Ui = Ui.NEW) -> Form:
        """The form of a deployment, as the button Run opens it."""
        identity = self.deployments()[deployment]["id"]
        self.page.goto(f"{self.address}{ui.value}/deployments/deployment/{identity}/run")
        form = Form(self.page, ui)
        form.wait()
        return form

    def open_run(self, run_id: str, ui: Ui = Ui.NEW, tab: str = "") -> None:
        """The page of a run."""
        self.page.goto(f"{self.address}{ui.value}/runs/flow-run/{run_id}{f'?tab={tab}' if tab else ''}")
        # A run that has just begun may get its name, which says what is trained, only now.
        self.wait_until(lambda: self.page.get_by_text(self.run(run_id)["name"], exact=True).first.is_visible())

    def open_artifact(self, run_id: str, key: str, ui: Ui = Ui.NEW) -> None:
        """The page of an artifact of a run."""
        self.page.goto(f"{self.address}{ui.value}/artifacts/artifact/{self.artifacts(run_id)[key]['id']}")
        self.page.get_by_text(key, exact=True).first.wait_for()

    def leave(self) -> None:
        """Close the page. An open one keeps asking the server, and draws its spinners without a GPU, while a run needs the processor."""
        self.page.goto("about:blank")

    def act(self, run_id: str, action: str) -> None:
        """Choose an entry of the menu of a run's page, and confirm it: Cancel, Pause, Resume or Retry."""
        self.open_run(run_id)
        self.page.get_by_role("button", name="Open menu").click()
        self.page.get_by_role("menuitem", name=action, exact=True).click()
        dialog = self.page.get_by_role("dialog").or_(self.page.get_by_role("alertdialog"))
        dialog.get_by_role("button", name=re.compile(rf"^{action}\b.+")).or_(
            dialog.get_by_role("button", name=action, exact=True)
        ).last.click()
        dialog.wait_for(state="hidden")


@dataclass(frozen=True)
class Form:
    """The form of a deployment. A field is named by its label, as in ``num workers``."""

    page: Page
    ui: Ui

    def wait(self) -> None:
        """Return when its fields are there."""
        self._labels().first.wait_for()

    def fill(self, label: str, value: object) -> None:
        """Write into a field of text or of a number."""
        self._field(label).locator("input, textarea").first.fill(str(value))

    def fill_json(self, label: str, value: object) -> None:
        """Write into a field of JSON, which is an editor."""
        self._field(label).locator(".cm-content").first.click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(json.dumps(value))

    def value(self, label: str) -> str:
        """What is written in a field of text or of a number."""
        return self._field(label).locator("input, textarea").first.input_value()

    def refusal(self, label: str) -> str:
        """What the browser shows beside a field of a number that it does not accept. Empty if it does."""
        return self._field(label).locator("input").first.evaluate("field => field.validationMessage")

    def choose(self, label: str, option: str) -> None:
        """Choose from a dropdown of the newer UI."""
        self._field(label).locator("[aria-haspopup=listbox]").first.click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def choose_kind(self, label: str, kind: str) -> None:
        """Choose one of several kinds of values, each with fields of its own. In the newer UI, they are tabs."""
        self.kinds(label).get_by_text(kind, exact=True).click()

    def kinds(self, label: str) -> Locator:
        """The tabs of all kinds."""
        return self._field(label).get_by_role("tab")

    def labels(self) -> list[str]:
        """The labels of all fields, from the top to the bottom."""
        return [text.partition("\n")[0] for text in self._labels().all_inner_texts()]

    def text(self) -> str:
        """All that it says."""
        return self.page.locator("form").first.inner_text()

    def submit(self) -> str:
        """Press Submit. Gives the id of the run that is created."""
        with self.page.expect_response("**/create_flow_run") as answered:
            self.page.get_by_role("button", name="Submit").click()
        answer = answered.value
        assert answer.ok, f"the form was refused: {answer.status} {answer.text()}"
        return answer.json()["id"]

    def _properties(self) -> Locator:
        return self.page.locator(_PROPERTY[self.ui])

    def _labels(self) -> Locator:
        return self._properties().locator(_LABEL[self.ui])

    def _field(self, label: str) -> Locator:
        """The innermost part of the form with a label. The UIs write ``num_workers`` or ``Num Workers``."""
        said = re.compile(rf"^{label.replace(' ', '[ _]')}( \(Optional\))?$", re.IGNORECASE)
        return self._properties().filter(has=self.page.locator(_LABEL[self.ui]).filter(has_text=said)).last
