"""A trial's point of the search space, kept in tags of its run. The text may need several tags."""

from __future__ import annotations

from collections.abc import Mapping

from trainlib._registry import tags

# MLflow accepts tags of up to 8000 characters.
_PIECE = 7000


def point_tags(point: str) -> dict[str, str]:
    """The text of a point, in as many tags as it needs."""
    pieces = [point[start : start + _PIECE] for start in range(0, len(point), _PIECE)]
    kept = {tags.trial_point_piece(index): piece for index, piece in enumerate(pieces)}
    return {**kept, tags.TRIAL_POINT_PIECES: str(len(pieces))}


def point_from(run_tags: Mapping[str, str]) -> str:
    """The text that the tags of a run keep."""
    count = int(run_tags[tags.TRIAL_POINT_PIECES])
    return "".join(run_tags[tags.trial_point_piece(index)] for index in range(count))
