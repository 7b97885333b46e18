"""MLflow draws no progress bars for trainlib, and the user's environment is as it was."""

from __future__ import annotations

import os

import pytest
from mlflow.utils.file_utils import ArtifactProgressBar

from trainlib._progress_bars import without_progress_bars

SWITCH = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


def draws() -> bool:
    with ArtifactProgressBar.files(desc="Downloading artifacts", total=1) as bar:
        return bar.pbar is not None


def test_bars_are_back_when_the_last_one_is_done(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    assert draws()
    first, second = without_progress_bars(), without_progress_bars()
    with first:
        second.__enter__()
    assert not draws(), "the other one still downloads"
    second.__exit__(None, None, None)
    assert SWITCH not in os.environ
    assert draws()


@pytest.mark.parametrize("asked", ["true", "false"])
def test_what_the_user_says_counts(monkeypatch, asked):
    monkeypatch.setenv(SWITCH, asked)
    with without_progress_bars():
        assert draws() == (asked == "true")
    assert os.environ[SWITCH] == asked
