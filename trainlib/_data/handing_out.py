"""Which worker reads what, as a :class:`~trainlib.DataConfig` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.data import DataIterator, Dataset
from ray.data._internal.iterator.stream_split_iterator import StreamSplitDataIterator

from trainlib._data.config import DataConfig
from trainlib.errors import InvalidArgumentError

__all__ = ["coordinators_of", "handed_out"]


def handed_out(
    config: DataConfig, datasets: dict[str, Dataset], nodes: Sequence[str], actors: Sequence[Any]
) -> list[dict[str, DataIterator]]:
    """What each rank reads, by name.

    Raises:
        InvalidArgumentError: a ``configure`` of the user's own returned anything else.
    """
    returned = config.configure(datasets, len(nodes), list(actors), list(nodes))
    if not isinstance(returned, list) or len(returned) != len(nodes) or not all(map(_is_readable, returned)):
        raise InvalidArgumentError(
            f"{type(config).__name__}.configure() has to return a list of {len(nodes)} dicts of iterators, one for each worker, "
            "e.g. [{'train': iterator} for iterator in datasets['train'].streaming_split(world_size)]"
        )
    return [
        {name: part.iterator() if isinstance(part, Dataset) else part for name, part in of_rank.items()}
        for of_rank in returned
    ]


def _is_readable(of_rank: Any) -> bool:
    return isinstance(of_rank, dict) and all(isinstance(part, (DataIterator, Dataset)) for part in of_rank.values())


def coordinators_of(parts: Sequence[dict[str, DataIterator]]) -> list[Any]:
    """The actors that split datasets. They do not end by themselves."""
    split = [part for of_rank in parts for part in of_rank.values() if isinstance(part, StreamSplitDataIterator)]
    return list({part._coord_actor._actor_id: part._coord_actor for part in split}.values())
