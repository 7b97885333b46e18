"""``run.json`` in a run's own folder: which run it is, and how it went. So it is found again by its folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._registry.attempts import stopped_by
from trainlib._secrets import masked_uri
from trainlib.config import CheckpointConfig
from trainlib.errors import RunNotFoundError

if TYPE_CHECKING:
    from trainlib._registry.run import RegisteredRun

__all__ = ["RUN_FILE", "RunFile", "read_run_file", "require_run_file", "write_run_file"]

RUN_FILE = "run.json"


@dataclass(frozen=True)
class RunFile:
    """What the folder of a run says about it."""

    run_id: str
    name: str
    kind: str
    """``training`` or ``sweep``."""
    tracking_uri: str
    """The store that has the run."""
    url: str
    status: str = "RUNNING"
    """MLflow's word for it."""
    attempts: int = 0
    message: str = ""
    """Of its last attempt, if it failed."""
    stopped: tuple[str, str] | None = None
    """Which limit has ended it, and how."""
    checkpoint_config: dict[str, Any] | None = None


def write_run_file(run: RegisteredRun, kind: str, status: str, config: CheckpointConfig | None = None) -> None:
    """Say in the folder of a run which run it is. A folder that cannot be written is left as it is."""
    stopped = stopped_by(run.attempts)
    facts = RunFile(
        run_id=run.run_id,
        name=run.name,
        kind=kind,
        tracking_uri=masked_uri(run.store.uri),
        url=run.url,
        status=status,
        attempts=len(run.attempts),
        message=run.attempts[-1].message if run.attempts and stopped is None else "",
        stopped=(stopped.reason.value, stopped.message) if stopped is not None else None,
        checkpoint_config=config.model_dump() if config is not None else None,
    )
    aside = run.log_dir / f".{RUN_FILE}.{os.getpid()}"
    try:
        aside.write_text(json.dumps(asdict(facts), indent=2) + "\n")
        os.replace(aside, run.log_dir / RUN_FILE)
    except OSError:  # a full disk shows elsewhere, with something that matters more
        aside.unlink(missing_ok=True)


def read_run_file(folder: Path) -> RunFile | None:
    """What the folder of a run says about it; None if it is no such folder."""
    try:
        facts = json.loads((folder / RUN_FILE).read_text())
    except (OSError, ValueError):
        return None
    known = {field.name for field in fields(RunFile)}
    return RunFile(**{name: value for name, value in facts.items() if name in known})


def require_run_file(folder: Path) -> RunFile:
    """What the folder of a run says about it.

    Raises:
        RunNotFoundError: it is no such folder.
    """
    if (found := read_run_file(folder)) is None:
        what = f"has no readable {RUN_FILE}" if folder.is_dir() else "is no folder"
        raise RunNotFoundError(
            f"{folder} {what}, so it is not the folder of a training or sweep. Pass result.log_dir, or a folder of "
            "$TRAINLIB_HOME/runs"
        )
    return found
