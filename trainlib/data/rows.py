"""How many rows each worker read in each epoch."""

from __future__ import annotations

from collections import defaultdict, deque

__all__ = ["RowCounts"]


class RowCounts:
    """Puts together what the ranks tell, each in its own time.

    Example:
        >>> counts = RowCounts(2)
        >>> counts.add(0, "train", 50)
        >>> counts.add(1, "train", 50)
        [50, 50]
        >>> counts.epochs
        {'train': [[50, 50]]}
    """

    def __init__(self, workers: int) -> None:
        self.epochs: dict[str, list[list[int]]] = {}
        """By dataset, one entry an epoch: the rows of each rank."""
        self._workers = workers
        self._waiting: dict[str, list[deque[int]]] = {}
        self.attempt_starts()

    def attempt_starts(self) -> None:
        """Forget epochs that only some of the ranks came to the end of."""
        self._waiting = defaultdict(lambda: [deque() for _ in range(self._workers)])

    def add(self, rank: int, dataset: str, rows: int) -> list[int] | None:
        """A rank has read an epoch. Gives the rows of all ranks if it was the last of them."""
        waiting = self._waiting[dataset]
        waiting[rank].append(rows)
        if not all(waiting):
            return None
        epoch = [each.popleft() for each in waiting]
        self.epochs.setdefault(dataset, []).append(epoch)
        return epoch
