"""How many checkpoints may wait on a worker's disk until the store has them. Pure: nobody waits here."""

from __future__ import annotations

from trainlib.config import CheckpointConfig

__all__ = ["WaitingRoom"]

_GIB = 1024**3


class WaitingRoom:
    """The checkpoints that are snapshotted but not yet saved, and whether there is room for another one.

    Example:
        >>> room = WaitingRoom(CheckpointConfig(max_staged=1))
        >>> room.enter(0, size=1000)
        >>> room.is_full
        True
        >>> room.leave(0)
        >>> room.is_full
        False
    """

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._sizes: dict[int, int] = {}

    def enter(self, number: int, size: int) -> None:
        """A checkpoint of so many bytes begins to wait."""
        self._sizes[number] = size

    def leave(self, newest: int) -> None:
        """Those up to this number wait no more: they are saved in order."""
        self._sizes = {number: size for number, size in self._sizes.items() if number > newest}

    @property
    def is_full(self) -> bool:
        """Whether the next one has to wait until another one has left."""
        many = len(self._sizes) >= self._config.max_staged
        return many or sum(self._sizes.values()) >= self._config.max_staged_gib * _GIB

    def __str__(self) -> str:
        taken = sum(self._sizes.values()) / _GIB
        return (
            f"the store is slower than the training. {len(self._sizes)} checkpoint(s) of {taken:.3g} GiB are not saved yet. "
            "Save checkpoints less often, or raise CheckpointConfig.max_staged "
            f"({self._config.max_staged}) or max_staged_gib ({self._config.max_staged_gib:g})."
        )
