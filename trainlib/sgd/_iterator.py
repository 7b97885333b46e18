"""A run whose results are iterated over while it goes on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from trainlib._execution.waiting import CancelledInThreadError, Interruption, cancelled_by
from trainlib.sgd.callbacks import SGDCallback

__all__ = ["SGDIterator"]

_LOOK_S = 0.2


class SGDIterator(Iterator[list[dict[str, Any]]]):
    """Gives what all ranks reported, one list for each report, with a result for each rank.

    The run goes on in the background while its results are looked at. Ctrl-C ends it, and so does :meth:`close`.

    Example::

        iterator = trainer.run_iterator(train_func)
        for results in iterator:
            print(results[0]["loss"])
        returned = iterator.get_final_results()
    """

    def __init__(self, run: Callable[[SGDCallback], list[Any]]) -> None:
        """Start a run; ``run`` makes it, with a callback that hears its results."""
        self._results: queue.SimpleQueue[list[dict[str, Any]]] = queue.SimpleQueue()
        self._interruption = Interruption()
        self._returned: list[Any] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, args=(run,), name="sgd-run", daemon=True)
        self._thread.start()

    def _follow(self, run: Callable[[SGDCallback], list[Any]]) -> None:
        try:
            with cancelled_by(self._interruption):
                self._returned = run(_Stream(self._results))
        except BaseException as error:  # raised again where results are asked for
            self._error = error

    def __next__(self) -> list[dict[str, Any]]:
        """The results of the next report.

        Raises:
            TrainingFailedError: the run failed, and no retries are left.
        """
        try:
            while True:
                was_running = self._thread.is_alive()
                try:
                    return self._results.get(timeout=_LOOK_S if was_running else 0)
                except queue.Empty:
                    if not was_running:
                        break
        except KeyboardInterrupt:
            self.close()
            raise
        self._raise()
        raise StopIteration

    def is_finished(self) -> bool:
        """Whether the run has ended, and all of its results were given."""
        return not self._thread.is_alive() and self._results.empty()

    def get_final_results(self, force: bool = False) -> list[Any]:
        """What the training function returned on each worker, by rank.

        Args:
            force: Wait for the end of the run without looking at the results that are left.

        Raises:
            RuntimeError: there are results left, and ``force`` is not set.
            TrainingFailedError: the run failed, and no retries are left.
        """
        if not force and not self.is_finished():
            raise RuntimeError(
                "the run goes on, or has results that were not looked at: iterate to the end first, or call "
                "get_final_results(force=True)"
            )
        try:
            while self._thread.is_alive():
                self._thread.join(_LOOK_S)
        except KeyboardInterrupt:
            self.close()
            raise
        while not self._results.empty():
            self._results.get()
        self._raise()
        return self._returned

    def close(self) -> None:
        """End the run, if it goes on, and wait until it has ended."""
        self._interruption.set()
        self._thread.join()

    def _raise(self) -> None:
        if self._error is not None and not isinstance(self._error, CancelledInThreadError):
            raise self._error


class _Stream(SGDCallback):
    """Hands results on to another thread."""

    def __init__(self, results: queue.SimpleQueue[list[dict[str, Any]]]) -> None:
        self._results = results

    def handle_result(self, results: list[dict[str, Any]], **info: Any) -> None:
        self._results.put(results)
