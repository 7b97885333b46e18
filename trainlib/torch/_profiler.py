"""Traces of PyTorch's profiler, brought from all ranks to the training's log directory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from trainlib import session

__all__ = ["TorchWorkerProfiler"]

_FOLDER = "pytorch_profiler"


class TorchWorkerProfiler:
    """Takes the traces of a profiler in a training function. Each rank's is a Chrome trace, ``rank_0.pt.trace.json``.

    They are in the folder ``pytorch_profiler`` of the training's log directory, and of its MLflow run. Open one at
    ``chrome://tracing``, at https://ui.perfetto.dev, or in TensorBoard. A rank's further traces are numbered.

    Example:
        >>> from trainlib import session
        >>> def train_func():
        ...     from torch.profiler import profile, schedule
        ...     profiler = TorchWorkerProfiler()
        ...     with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=profiler.trace_handler) as trace:
        ...         for epoch in range(4):
        ...             ...  # train
        ...             trace.step()
        ...             session.report({"epoch": epoch})
    """

    def __init__(self) -> None:
        self._session = session.current("TorchWorkerProfiler")
        self._traces = 0

    def trace_handler(self, profiler: Any) -> None:
        """Take a trace: it is what ``torch.profiler.profile(on_trace_ready=...)`` calls."""
        self._traces += 1
        number = f"_{self._traces}" if self._traces > 1 else ""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "trace.json")
            profiler.export_chrome_trace(str(file))
            name = f"rank_{self._session.context.world_rank}{number}.pt.trace.json"
            self._session.send_file(f"{_FOLDER}/{name}", file.read_bytes())

    def get_and_clear_profile_traces(self) -> dict[str, Any]:
        """What is to be reported of the traces: nothing. They are on their way already, and are no metrics.

        It is there for functions that say ``report(..., **profiler.get_and_clear_profile_traces())``.
        """
        return {}
