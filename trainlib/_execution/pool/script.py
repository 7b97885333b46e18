"""What a worker of the platform gets from the script that uses it.

A Ray that a script has started hands on the script's folder and its environment variables by itself. The platform's Ray was
started elsewhere, by another process.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import suppress
from dataclasses import dataclass, field, replace

__all__ = ["Script", "packages_stamp", "replace_environment", "startup_environment"]

# Ray's own, and the devices that it has assigned.
_RAYS = ("RAY_",)
_DEVICES = ("_VISIBLE_DEVICES", "_VISIBLE_CORES", "_VISIBLE_CHIPS")
# These differ from terminal to terminal, or are set by trainlib itself while a training starts. No framework reads them when
# it is imported, so a worker gets them when it is used.
_LATE = (
    "MLFLOW_",
    "PREFECT_",
    "SSH_",
    "TERM",
    "TMUX",
    "VSCODE_",
    "XDG_SESSION",
    "GNOME_TERMINAL",
    "KONSOLE",
    "WINDOWID",
)
_LATE_NAMES = ("_", "COLUMNS", "INVOCATION_ID", "JOURNAL_STREAM", "LINES", "OLDPWD", "PWD", "SHLVL", "STY", "WINDOW")


@dataclass(frozen=True)
class Script:
    """A script, as its workers have to know it."""

    directory: str | None
    """Where it runs. None if its workers start in another folder that it has asked for."""
    import_path: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    """The variables that a worker is not started with."""

    @classmethod
    def this(cls) -> Script:
        """The script that this process runs."""
        late = {name: value for name, value in os.environ.items() if _is_late(name)}
        return cls(os.getcwd(), tuple(map(os.path.abspath, sys.path)), late)

    def with_code_from_elsewhere(self) -> Script:
        """The same script, whose workers have the code of another folder, and have started in it."""
        return replace(self, directory=None)

    def enter(self) -> None:
        """Make this process, a worker, look for files, modules and settings where the script does."""
        if self.directory is None:
            sys.path += [path for path in self.import_path if path not in sys.path]
        else:
            with suppress(FileNotFoundError):  # the script's own folder was deleted: it has none either
                os.chdir(self.directory)
            # In the order of the script: its own folder comes first, so that its modules are the ones that are found.
            sys.path[:] = [*self.import_path, *(path for path in sys.path if path not in self.import_path)]
        os.environ.update(self.environment)


def startup_environment() -> tuple[tuple[str, str], ...]:
    """The environment variables of this process that a worker has to be started with."""
    return tuple(sorted(item for item in os.environ.items() if not _is_late(item[0]) and not _is_rays(item[0])))


def replace_environment(environment: tuple[tuple[str, str], ...]) -> None:
    """Let this process, a worker that has just started, have these variables and no others but Ray's."""
    rays = {name: value for name, value in os.environ.items() if _is_rays(name)}
    os.environ.clear()
    os.environ.update({**dict(environment), **rays})


def packages_stamp() -> int:
    """A number that changes whenever a package is installed into this Python environment, updated or removed."""
    try:
        return os.stat(sysconfig.get_path("purelib")).st_mtime_ns
    except FileNotFoundError:
        return 0


def _is_late(name: str) -> bool:
    return name in _LATE_NAMES or name.startswith(_LATE)


def _is_rays(name: str) -> bool:
    return name.startswith(_RAYS) or name.endswith(_DEVICES)
