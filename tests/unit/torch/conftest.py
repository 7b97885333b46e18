"""A training function's session, without workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from trainlib import TrainContext, session


@pytest.fixture
def as_rank() -> Iterator[Callable[..., None]]:
    """Lets a test act as the training function of one rank."""

    def enter(rank: int = 0, world_size: int = 1) -> None:
        session.enter(SimpleNamespace(context=TrainContext(world_rank=rank, world_size=world_size)))  # type: ignore[arg-type]

    yield enter
    session.enter(None)
