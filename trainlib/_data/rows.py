"""How many rows each worker read in each epoch."""

from __future__ import annotations

from collections import defaultdict, deque

__all__ = ["RowCounts"]


class RowCounts:
    """Collects the row counts that the ranks send, each at its own pace.

    Example:
        >>> counts = RowCounts(2)
        >>> counts.add(0, "train", 50, iteration=1)
        >>> counts.add(1, "train", 50, iteration=1)
        [50, 50]
        >>> counts.by_dataset()
        {'train': [[50, 50]]}
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._epochs: dict[str, list[tuple[int, list[int]]]] = {}
        self._waiting: dict[str, list[deque[int]]] = {}
        self.attempt_starts(0)

    def attempt_starts(self, resumed_at: int) -> None:
        """Forget epochs that will be read again, and epochs that only some of the ranks finished."""
        self._waiting = defaultdict(lambda: [deque() for _ in range(self._workers)])
        for name, epochs in self._epochs.items():
            self._epochs[name] = [each for each in epochs if each[0] <= resumed_at]

    def add(self, rank: int, dataset: str, rows: int, iteration: int) -> list[int] | None:
        """A rank has read an epoch. Returns the rows of all ranks if it was the last one."""
        waiting = self._waiting[dataset]
        waiting[rank].append(rows)
        if not all(waiting):
            return None
        epoch = [each.popleft() for each in waiting]
        self._epochs.setdefault(dataset, []).append((iteration, epoch))
        return epoch

    def by_dataset(self) -> dict[str, list[list[int]]]:
        """For each dataset, one entry per epoch: the rows of each rank. Ranks that did not finish an epoch count as 0."""
        result = {name: [rows for _, rows in epochs] for name, epochs in self._epochs.items()}
        for name, waiting in self._waiting.items():
            while any(waiting):
                result.setdefault(name, []).append([each.popleft() if each else 0 for each in waiting])
        return {name: epochs for name, epochs in result.items() if epochs}
