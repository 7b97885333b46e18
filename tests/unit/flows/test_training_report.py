"""The report of a training in the Prefect UI."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree

import pytest

from trainlib._execution.waiting import CancelledInThreadError, SuspendedInThreadError
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.retention import SavedCheckpoint
from trainlib._training.summary import MetricCurve, TrainingSummary, curves_of
from trainlib.tasks._charts import chart
from trainlib.tasks._prefect_screen import percent_done
from trainlib.tasks._training_report import report

ROWS = [
    {"training_iteration": 1, "time_total_s": 1.0, "loss": 2.0, "accuracy": 0.5, "note": "warm-up"},
    {"training_iteration": 2, "time_total_s": 2.0, "loss": float("nan"), "accuracy": 0.9, "epoch": 1},
    {"training_iteration": 3, "time_total_s": 3.0, "loss": 0.5, "accuracy": 0.8},
]
LOST = AttemptRecord(1, Outcome.WORKER, None, 1, "10.0.0.7", 4, "rank 1 died | see `dmesg`\nfor more")
ONE = AttemptRecord(2, Outcome.FINISHED, "checkpoint_000001")


def summary(**changed) -> TrainingSummary:
    facts = {
        "name": "digits",
        "url": "http://mlflow/#/runs/1",
        "artifacts": "s3://bucket/runs",
        "attempts": (LOST, ONE),
        "checkpoints": (SavedCheckpoint(1, 2, "m-2", "s3://bucket/runs/2", 0.9),),
        "score": "accuracy",
        "order": "max",
        "rows": ROWS,
        "error": None,
    }
    return TrainingSummary(**{**facts, **changed})


def test_curves_have_the_numbers_that_were_reported_the_score_first():
    accuracy, loss = curves_of(ROWS, first="accuracy")
    assert accuracy.points == ((1, 0.5), (2, 0.9), (3, 0.8))
    assert loss.points == ((1, 2.0), (3, 0.5)), "a value that is not a number is no point"


def test_a_report_has_metrics_attempts_with_causes_and_checkpoints():
    text, first_line = report(summary())
    assert first_line == "Finished · best accuracy 0.9 (iteration 2)"
    assert "| `accuracy` | 0.8 (3) | 0.5 (1) | 0.9 (2) |" in text
    assert "| 1 | **worker** | the start | 4 iteration(s) | rank 1 on 10.0.0.7 |" in text
    assert "- attempt 1: rank 1 died \\| see \\`dmesg\\` for more" in text, "as plain text, on one line"
    assert "| 2 | finished | checkpoint_000001 | nothing |" in text
    assert "| checkpoint_000001 | 2 | 0.9 | `m-2` |" in text
    assert "(http://mlflow/#/runs/1)" in text


def test_a_report_says_that_a_limit_has_stopped_it():
    stopped = AttemptRecord(3, Outcome.NAN, "checkpoint_000001", message="loss is NaN at iteration 4")
    assert report(summary(attempts=(LOST, stopped)))[1].startswith("Stopped · best accuracy")


def test_the_best_of_a_score_that_should_be_low_is_the_lowest():
    assert report(summary(score="loss", order="min"))[1] == "Finished · best loss 0.5 (iteration 3)"


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ValueError("a <b> bug"), "Failed"),
        (SuspendedInThreadError(), "Suspended"),
        (CancelledInThreadError(), "Ended by somebody"),
    ],
)
def test_a_report_says_how_it_ended_also_without_anything_to_show(error, word):
    text, first_line = report(summary(error=error, rows=[], attempts=(), checkpoints=()))
    assert first_line == word
    assert "No metric was reported." in text
    assert "None was saved." in text
    assert "<b>" not in text


def test_a_chart_is_an_image_whatever_the_metric_is_called():
    found = re.fullmatch(
        r"!\[.*\]\(data:image/svg\+xml;base64,(.*)\)", chart(MetricCurve("a<b&c", ((1, 1.0), (9, 1.0))))
    )
    assert found is not None
    image = ElementTree.fromstring(base64.b64decode(found[1]))
    assert "a<b&c" in "".join(image.itertext())


def test_long_curves_are_thinned():
    many = [float(value) for value in range(100_000)]
    assert len(chart(MetricCurve("loss", tuple(enumerate(many))))) < 20_000


def test_a_bar_without_a_known_end_moves_and_is_never_full():
    moves = [percent_done(iteration, None) for iteration in range(1, 1000)]
    assert moves == sorted(set(moves))
    assert moves[-1] < 100.0
    assert percent_done(7, 5) == 100.0
