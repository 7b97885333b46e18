"""What is written down about a platform that is up, so that other processes find it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from trainlib import _storage as storage
from trainlib._process import Process

__all__ = ["Platform", "forget", "last", "running", "write"]


@dataclass(frozen=True)
class Platform:
    """A platform: the addresses of its services, and the Python environment that it runs in.

    Example:
        >>> platform = Platform("node-1:7:1234", "http://127.0.0.1:4200", "http://127.0.0.1:5000", "127.0.0.1:6379")
        >>> platform.prefect_api
        'http://127.0.0.1:4200/api'
    """

    process: str
    """The process that started it, as :class:`~trainlib._process.Process` writes it. The platform lives as long as it."""
    prefect: str
    mlflow: str
    ray: str
    """The address of Ray's GCS."""
    version: str = ""
    """Of trainlib."""
    python: str = sys.prefix
    """The virtual environment."""
    has_auth: bool = False
    """Whether both servers ask for a password. It is in a file of its own, which only the user can read."""
    pids: dict[str, int] = field(default_factory=dict)
    """The process of each service."""

    @property
    def prefect_api(self) -> str:
        """Where Prefect's clients ask."""
        return f"{self.prefect}/api"

    @property
    def is_here(self) -> bool:
        """Whether its process lives, on this machine. All its addresses are loopback ones.

        A process of before the machine was last started is one of another machine.
        """
        process = Process.parse(self.process)
        return process.is_here and not process.is_gone


def running() -> Platform | None:
    """The platform of this home, if it is up on this machine."""
    platform = last()
    return platform if platform is not None and platform.is_here else None


def last() -> Platform | None:
    """The platform that was written down last. It may have been killed since."""
    try:
        written = json.loads(_file().read_text())
        known = {field.name for field in fields(Platform)}
        return Platform(**{name: value for name, value in written.items() if name in known})  # a newer one may say more
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return None  # there is none, or the machine was switched off while it was written


def write(platform: Platform) -> None:
    """Let other processes find the platform from now on."""
    _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = _file().with_suffix(f".{os.getpid()}")
    aside.write_text(json.dumps(asdict(platform), indent=2) + "\n")
    os.replace(aside, _file())  # nobody reads half of it


def forget() -> None:
    """Let no process join it any more."""
    _file().unlink(missing_ok=True)


def _file() -> Path:
    return storage.home() / "platform" / "platform.json"
