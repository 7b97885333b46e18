"""A trial's point of the search space, kept in tags of its run. It is pickled, and may need several tags."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import cloudpickle

from trainlib._registry import tags

# MLflow accepts tags of up to 8000 characters.
_PIECE = 7000


def point_tags(point: Any) -> dict[str, str]:
    """A point, in as many tags as it needs."""
    text = base64.b64encode(zlib.compress(cloudpickle.dumps(point))).decode()
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    kept = {tags.trial_point_piece(index): piece for index, piece in enumerate(pieces)}
    return {**kept, tags.TRIAL_POINT_PIECES: str(len(pieces))}


def point_from(run_tags: Mapping[str, str]) -> Any:
    """The point that the tags of a run keep."""
    count = int(run_tags[tags.TRIAL_POINT_PIECES])
    text = "".join(run_tags[tags.trial_point_piece(index)] for index in range(count))
    return cloudpickle.loads(zlib.decompress(base64.b64decode(text)))
