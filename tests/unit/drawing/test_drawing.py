"""Results as curves, pages and plots. Nothing is trained."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from trainlib import Checkpoint, Result, Stopped, StopReason
from trainlib._drawing.svg import svg_of
from trainlib._training.summary import MetricCurve
from trainlib.tune import ResultGrid

mpl.use("Agg")


def trained(*losses: float, **more) -> Result:
    rows = [{"training_iteration": at, "loss": loss} for at, loss in enumerate(losses, start=1)]
    last = {"loss": losses[-1], "training_iteration": len(losses)} if losses else {}
    metrics = {**last, "config": more.pop("config", {})}
    return Result(metrics=metrics, history=rows, **more)


def grid_of(*results: Result, **more) -> ResultGrid:
    return ResultGrid(results, metric="loss", mode="min", run_url="http://mlflow/sweep", **more)


class Balanced(HTMLParser):
    """Fails if a tag is not closed, and keeps texts and links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "a":
            self.links.append(dict(attrs)["href"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


# -- curves -----------------------------------------------------------------------------------------------


def test_the_first_curve_is_drawn_last_and_attempts_are_marked():
    curves = [MetricCurve("loss", ((1, 3.0), (4, value))) for value in (1.0, 2.0, 2.5)]
    root = ElementTree.fromstring(svg_of(curves, resumed_at=[2, 0]))
    space = "{http://www.w3.org/2000/svg}"
    lines = root.findall(f"{space}polyline")
    assert len(lines) == 3
    assert [line.get("stroke") for line in lines] == ["#8b8b8b", "#8b8b8b", "#3b82f6"]
    assert [title.text for title in root.iter(f"{space}title")] == ["attempt 2", "attempt 3"]
    texts = [text.text for text in root.findall(f"{space}text")]
    assert texts == ["loss", "1 to 3", "1", "iteration 4"]


# -- pages ------------------------------------------------------------------------------------------------


def test_the_page_of_a_training_has_a_table_the_curve_and_the_links():
    result = trained(
        0.9,
        0.3,
        0.5,
        attempts=2,
        resumed_at=[1],
        checkpoint=Checkpoint("/runs/<b>/checkpoint_000002"),
        log_dir="/runs/a",
        run_url="http://mlflow/run?a=1&b=2",
        flow_run_url="http://prefect/flow",
    )
    page = result._repr_html_()
    seen = Balanced(page)
    assert seen.rows == [["metric", "last", "lowest", "highest"], ["loss", "0.5 (3)", "0.3 (2)", "0.9 (1)"]]
    assert seen.links == ["http://mlflow/run?a=1&b=2", "http://prefect/flow"]
    assert "<svg" in page
    assert "<title>attempt 2</title>" in page
    assert "2 attempts" in page
    assert "/runs/&lt;b&gt;/checkpoint_000002" in page


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (Result(), "<b>Finished</b>"),
        (trained(0.5, error=ValueError("a <b> banana")), "<code>ValueError: a &lt;b&gt; banana</code>"),
        (trained(0.5, stopped=Stopped(StopReason.NAN, "loss is NaN")), "<b>Stopped: loss is NaN</b>"),
        (trained(float("nan")), "<b>Finished</b>"),
    ],
)
def test_a_page_of_whatever_came_of_a_training(result, shown):
    page = result._repr_html_()
    Balanced(page)
    assert shown in page


def test_the_page_of_a_sweep_has_the_best_trial_on_top():
    grid = grid_of(
        trained(0.9, 0.5, config={"lr": 0.1, "epochs": 2}, run_url="http://mlflow/0"),
        trained(0.9, 0.1, config={"lr": 0.2, "epochs": 2, "token": "abc"}, run_url="http://mlflow/1"),
        trained(0.05, config={"lr": 0.3, "epochs": 2}, error=ValueError("no")),
        trained(config={"lr": 0.4, "epochs": 2}),
        trials_url="http://mlflow/trials",
    )
    page = grid._repr_html_()
    seen = Balanced(page)
    assert seen.rows[0] == ["trial", "state", "loss", "lr", "token", "iterations"], "epochs are the same in all"
    assert seen.rows[1] == ["1", "Finished", "0.1", "0.2", "********", "2"]
    assert [row[0] for row in seen.rows[1:]] == ["1", "0", "2", "3"]
    assert seen.links == ["http://mlflow/1", "http://mlflow/0", "http://mlflow/trials", "http://mlflow/sweep"]
    assert page.count("<polyline") == 3
    Balanced(ResultGrid([])._repr_html_())


# -- plots ------------------------------------------------------------------------------------------------


def test_a_plot_has_the_curve_and_a_line_where_each_attempt_went_on():
    result = trained(0.9, 0.5, 0.3, resumed_at=[1, 2])
    axes = result.plot()
    curve, *marks = axes.get_lines()
    assert (list(curve.get_xdata()), list(curve.get_ydata())) == ([1, 2, 3], [0.9, 0.5, 0.3])
    assert [(mark.get_label(), mark.get_xdata()[0]) for mark in marks] == [("attempt 2", 1), ("attempt 3", 2)]
    assert [text.get_text() for text in axes.texts] == ["attempt 2", "attempt 3"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "loss")
    assert result.plot("loss", ax=axes) is axes


@pytest.mark.parametrize(("mode", "best"), [("min", 0.1), ("max", 0.5)])
def test_the_best_trial_is_drawn_on_top(mode, best):
    grid = grid_of(trained(0.9, 0.5, config={"lr": 1}), trained(0.9, 0.1, config={"lr": 2}), trained(config={"lr": 3}))
    axes = grid.plot(mode=mode)
    on_top = max(axes.get_lines(), key=lambda line: line.get_zorder())
    assert on_top.get_ydata()[-1] == best
    first = axes.get_legend().get_texts()[0].get_text()
    assert re.fullmatch(r"best: trial [01] · lr=[12]", first)
    assert len(axes.get_lines()) == 2


def test_what_cannot_be_plotted_says_why(monkeypatch):
    with pytest.raises(ValueError, match=r"no finite 'acc' was reported.* What was reported: loss"):
        trained(0.5).plot("acc")
    with pytest.raises(ValueError, match="no finite number was reported, so there is nothing to plot"):
        Result().plot()
    with pytest.raises(ValueError, match=r"no finite 'acc' was reported.* What was reported: loss"):
        grid_of(trained(0.5)).plot("acc")
    with pytest.raises(ValueError, match="mode is 'best': use 'max' or 'min'"):
        grid_of(trained(0.5)).plot(mode="best")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        trained(0.5).plot()
