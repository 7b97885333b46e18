"""MLflow's UI, as a person uses it: a run's page, the table of runs, the comparison, and charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page

__all__ = ["FIRST_VISIT_OVER", "Mlflow"]

# On a browser's first visit, MLflow opens a chat beside every page.
FIRST_VISIT_OVER = """
    localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
    localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");
"""


@dataclass(frozen=True)
class Mlflow:
    """An MLflow server, in a browser."""

    page: Page
    address: str

    def ask(self, path: str, **question: Any) -> Any:
        """What the server's API answers; with a question, to a POST."""
        url = f"{self.address}/api/2.0/mlflow/{path}"
        answer = self.page.request.post(url, data=question) if question else self.page.request.get(url)
        assert answer.ok, f"{url}: {answer.status} {answer.text()}"
        return answer.json()

    def runs(self, wanted: str) -> list[dict[str, Any]]:
        """The runs for which something holds, in all experiments."""
        experiments = [each["experiment_id"] for each in self.ask("experiments/search", max_results=100)["experiments"]]
        return self.ask("runs/search", experiment_ids=experiments, filter=wanted).get("runs", [])

    def steps(self, run_id: str, metric: str) -> list[int]:
        """The iterations at which a run has a value of a metric, in the order of recording."""
        found = self.ask(f"metrics/get-history?run_id={run_id}&metric_key={metric}&max_results=10000")
        return [int(point["step"]) for point in found["metrics"]]

    def wait_for_run(self) -> str:
        """Wait until the page of a run is shown. Gives the run's id."""
        self.page.wait_for_url("**/runs/*")
        self.page.get_by_role("tab", name="Model metrics").wait_for()
        return self.page.url.partition("/runs/")[2].partition("?")[0].partition("/")[0]

    def rows(self, text: str) -> Locator:
        """Rows of the table of runs that contain a text."""
        return self.page.get_by_role("row").filter(has_text=text)

    def open_charts(self) -> Locator:
        """Open the charts on the page of a run. Gives them."""
        self.page.get_by_role("tab", name="Model metrics").click()
        return self.charts

    @property
    def charts(self) -> Locator:
        """The charts that the page shows."""
        return self.page.locator(".js-plotly-plot")

    def compare_all(self) -> None:
        """Select all runs of the table, and press Compare."""
        self.page.get_by_role("checkbox", name="Select all runs").click()
        self.page.get_by_role("button", name="Compare").click()
        self.page.wait_for_url("**/compare-runs**")
