"""The working directory of a training function: each rank has its own, so that ranks that write one file do not race."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainlib import _storage as storage

__all__ = ["ORIGINAL", "WorkingDirectory", "present", "remove_empty"]

ORIGINAL = "TRAINLIB_ORIG_WORKING_DIR"
"""The environment variable that names the folder in which the script runs."""
_FOLDER = "rank_{}"
# Where Ray unpacks code that was sent to a machine.
_COPIES = os.path.join("runtime_resources", "working_dir_files")


@dataclass(frozen=True)
class WorkingDirectory:
    """Where training functions run."""

    folders: str | None = None
    """The folder that has a folder for each rank. None lets them run where the worker was started."""
    script: str | None = None
    """The folder in which the script runs. None if the code of its workers comes from another one."""

    @contextmanager
    def entered(self, rank: int) -> Iterator[None]:
        """Let this process, a worker, run in the folder of a rank. A folder in which nothing was written is removed."""
        before = present()
        if (script := self._script_here(before)) is not None:
            os.environ[ORIGINAL] = script
        if self.folders is None:
            yield
            return
        if before is not None:
            _make_paths_absolute()
        folder = _made(Path(self.folders, _FOLDER.format(rank)))
        os.chdir(folder)
        try:
            yield
        finally:
            with suppress(FileNotFoundError):  # somebody has removed it meanwhile
                os.chdir(before or "/")
            with suppress(OSError):  # it is not empty
                os.rmdir(folder)

    def _script_here(self, before: str | None) -> str | None:
        """The script's folder on this machine. A worker that was sent a copy of it has started there."""
        is_copy = before is not None and _COPIES in before
        return self.script if self.script and not is_copy and os.path.isdir(self.script) else before


def present() -> str | None:
    """The folder that this process runs in; None if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def remove_empty(folders: Path) -> None:
    """Remove the folders of ranks in which nothing was written: a worker that is killed leaves its own behind."""
    for folder in folders.glob(_FOLDER.format("*")):
        if folder.is_dir():
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _made(folder: Path) -> Path:
    """The folder, or a temporary one on a node that cannot have it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix=f"trainlib-{folder.name}-"))
    return folder


def _make_paths_absolute() -> None:
    """Let what is relative to the present folder mean the same in another one: where modules are, and trainlib's home."""
    sys.path[:] = [os.path.abspath(path) for path in sys.path]
    if "TRAINLIB_HOME" in os.environ:
        os.environ["TRAINLIB_HOME"] = str(storage.home())
