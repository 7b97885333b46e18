"""The result of an earlier training, read from its folder. No server is asked."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

from trainlib import _storage as storage
from trainlib._execution.causes import Cause
from trainlib._lazy_rows import LazyRows
from trainlib._registry.checkpoint_shelf import is_own_shelf, read_shelf
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.retention import best
from trainlib._registry.run_file import RunFile, require_run_file
from trainlib._training.error_file import kept_error
from trainlib._training.history_rows import RowsInFile
from trainlib._training.log_files import PARAMS, RESULTS
from trainlib.config import CheckpointConfig
from trainlib.errors import InvalidArgumentError, TrainingFailedError
from trainlib.result import Result, Stopped, StopReason

__all__ = ["result_at"]


def result_at(path: str | os.PathLike[str], *, trust: bool = False) -> Result:
    """The result of the training whose folder this is.

    Args:
        path: The folder.
        trust: Whether its pickles may be loaded even if they belong to another user.

    Raises:
        RunNotFoundError: it is no folder of a training.
        InvalidArgumentError: it is the folder of a sweep.
    """
    folder = Path(path).expanduser().absolute()
    run = require_run_file(folder)
    if run.kind == "sweep":
        raise InvalidArgumentError(
            f"{folder} is the folder of a sweep. Get its results with Tuner.restore({str(folder)!r}).get_results()"
        )
    config = CheckpointConfig(**(run.checkpoint_config or {}))
    saved = [each for each in read_shelf(folder) if _may_exist(each.location)]
    trusts_checkpoints = trust or is_own_shelf(folder)
    history = _history(folder)
    return Result(
        metrics=_last(history, folder, is_finished=run.status == "FINISHED"),
        checkpoint=as_checkpoint(saved[-1], trust=trusts_checkpoints) if saved else None,
        best_checkpoints=[
            (as_checkpoint(each, trust=trusts_checkpoints), dict(each.metrics)) for each in best(saved, config)
        ],
        error=_error(run, folder, trust=trust),
        log_dir=folder,
        run_id=run.run_id,
        run_url=run.url,
        attempts=run.attempts,
        stopped=Stopped(StopReason(run.stopped[0]), run.stopped[1]) if run.stopped is not None else None,
        history=history,
    )


def _history(folder: Path) -> LazyRows | list[dict[str, Any]]:
    file = folder / RESULTS
    return RowsInFile(file, file.stat().st_size, has_pickles=False) if file.exists() else []


def _last(history: LazyRows | list[dict[str, Any]], folder: Path, *, is_finished: bool) -> dict[str, Any]:
    (last,) = deque(history, maxlen=1) or [{}]
    file = folder / PARAMS
    config = {} if "config" in last or not file.exists() else {"config": json.loads(file.read_text())}
    return {**last, **config, **({"done": True} if is_finished and last else {})}


def _may_exist(location: str) -> bool:
    """Whether a checkpoint may be there. A store elsewhere is not asked."""
    path = storage.local_path(location)
    return path is None or path.exists()


def _error(run: RunFile, folder: Path, *, trust: bool) -> BaseException | None:
    if run.status != "FAILED":
        return None
    return kept_error(folder, trust=trust) or TrainingFailedError(
        run.message or "it failed", cause=Cause.USER, attempt=max(run.attempts, 1)
    )
