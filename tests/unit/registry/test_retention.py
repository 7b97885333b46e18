"""Which checkpoints are the best, and which may go."""

from __future__ import annotations

import math

from trainlib import CheckpointConfig
from trainlib._registry.retention import SavedCheckpoint, best, expendable

LOWEST = CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="loss", checkpoint_score_order="min")
HIGHEST = CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="acc")


def saved(*scores: float | None) -> list[SavedCheckpoint]:
    return [SavedCheckpoint(index, index + 1, f"m-{index}", f"/c/{index}", score) for index, score in enumerate(scores)]


def indices(checkpoints: list[SavedCheckpoint]) -> list[int]:
    return [checkpoint.index for checkpoint in checkpoints]


def test_the_best_is_last():
    assert indices(best(saved(2, 4, 1, 3), LOWEST)) == [0, 2]
    assert indices(best(saved(2, 4, 1, 3), HIGHEST)) == [3, 1]


def test_the_newest_stays_although_it_is_not_among_the_best():
    assert indices(expendable(saved(2, 4, 1, 3), LOWEST)) == [1]


def test_without_a_score_the_newest_stay():
    config = CheckpointConfig(num_to_keep=2)
    assert indices(best(saved(None, None, None), config)) == [1, 2]
    assert indices(expendable(saved(None, None, None), config)) == [0]


def test_all_stay_by_default():
    assert expendable(saved(1, 2, 3), CheckpointConfig()) == []
    assert indices(best(saved(1, 2, 3), CheckpointConfig())) == [0, 1, 2]


def test_nan_is_the_worst_score():
    assert indices(best(saved(math.nan, 5, 4), LOWEST)) == [1, 2]
    assert indices(best(saved(math.nan, 5, 4), HIGHEST)) == [2, 1]


def test_of_equal_scores_the_newer_is_better():
    assert indices(best(saved(1, 1, 1), HIGHEST)) == [1, 2]


def test_nothing_saved():
    assert expendable([], LOWEST) == []
    assert best([], LOWEST) == []
