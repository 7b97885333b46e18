"""What holds for any checkpoints and any config: the newest stays, the best stay, and no more than asked for."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from trainlib import CheckpointConfig
from trainlib._registry.retention import SavedCheckpoint, best, by_quality, expendable

scores = st.none() | st.floats()
saved_lists = st.lists(scores, max_size=12).map(
    lambda all_scores: [SavedCheckpoint(i, i + 1, f"m-{i}", f"/m-{i}", score) for i, score in enumerate(all_scores)]
)
configs = st.builds(
    lambda keep, attribute, order: CheckpointConfig(
        num_to_keep=keep, checkpoint_score_attribute=attribute, checkpoint_score_order=order
    ),
    st.none() | st.integers(1, 5),
    st.none() | st.just("score"),
    st.sampled_from(["max", "min"]),
)


@given(saved_lists, configs)
def test_what_is_kept(saved, config):
    deleted = expendable(saved, config)
    kept = [each for each in saved if each not in deleted]
    if saved:
        assert saved[-1] in kept, "a retry resumes from the newest"
    assert set(map(id, best(saved, config))) <= set(map(id, kept))
    if config.num_to_keep is None:
        assert deleted == []
    else:
        assert len(kept) <= config.num_to_keep + 1
    assert expendable(kept, config) == [], "what is kept is kept"


@given(saved_lists, configs)
def test_the_best_is_last_and_what_has_no_score_is_worst(saved, config):
    ranked = by_quality(saved, config)
    assert sorted(each.index for each in ranked) == [each.index for each in saved]
    if config.checkpoint_score_attribute is None:
        assert ranked == saved
        return
    has_score = [each.score is not None and not math.isnan(each.score) for each in ranked]
    assert has_score == sorted(has_score)
    numbers = [each.score for each, has in zip(ranked, has_score, strict=True) if has]
    assert numbers == sorted(numbers, reverse=config.checkpoint_score_order == "min")
