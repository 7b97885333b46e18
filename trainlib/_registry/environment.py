"""What a training ran with, for the day on which somebody has to rebuild it: Python, packages, and code."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache

from trainlib._masked_text import masked_text

__all__ = ["Environment"]

_LONGEST_DIFF = 1024**2
_GIT_S = 5.0


@dataclass(frozen=True)
class Environment:
    """Everything around a training function that decides what it computes."""

    python: str
    platform: str
    packages: Mapping[str, str]
    """The versions of all installed packages."""
    commit: str | None = None
    """What was checked out in the working directory."""
    diff: str | None = None
    """What was changed there since, and not committed, with new files of code. Secrets in it are masked."""
    seeds: Mapping[str, str] = field(default_factory=dict)
    """The variables by which Python and the frameworks are seeded from outside."""

    @classmethod
    def here(cls) -> Environment:
        """That of this process. Files that change later do not matter: the process has loaded them."""
        return _in(os.getcwd())

    @classmethod
    def loads(cls, data: bytes) -> Environment:
        """What :meth:`dumps` gave."""
        return cls(**json.loads(data))

    def dumps(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode()

    def differences(self, other: Environment) -> list[str]:
        """What is not the same in another one, in words.

        Example:
            >>> then = Environment("3.11.7", "Linux", {"torch": "2.6", "numpy": "2.1"}, commit="a1")
            >>> now = Environment("3.11.7", "Linux", {"torch": "2.7"}, commit="b2")
            >>> then.differences(now)
            ['numpy was 2.1, and is not installed', 'torch was 2.6, and is 2.7', 'the code was at commit a1, and is at b2']
        """
        found = [_differs(name, getattr(self, name), getattr(other, name)) for name in ("python", "platform")]
        for name in sorted({*self.packages, *other.packages}):
            found.append(_differs(name, self.packages.get(name), other.packages.get(name)))
        for name in sorted({*self.seeds, *other.seeds}):
            found.append(_differs(name, self.seeds.get(name), other.seeds.get(name), missing="not set"))
        if self.commit != other.commit:
            found.append(f"the code was at commit {self.commit or 'none'}, and is at {other.commit or 'none'}")
        if self.diff != other.diff:
            found.append("what was changed in the code without being committed is not the same")
        return [each for each in found if each is not None]


def _differs(name: str, then: str | None, now: str | None, missing: str = "not installed") -> str | None:
    if then == now:
        return None
    return f"{name} was {then or missing}, and is {now or missing}"


@cache
def _in(folder: str) -> Environment:
    commit = _git(folder, "rev-parse", "HEAD")
    diff = _changes(folder) if commit is not None else None
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_packages(),
        commit=commit,
        # First what may be cut through, such as a URI, then the limit: or half a password might stay.
        diff=masked_text(diff[: 2 * _LONGEST_DIFF])[:_LONGEST_DIFF] if diff else None,
        seeds={name: os.environ[name] for name in ("PYTHONHASHSEED", "PL_GLOBAL_SEED") if name in os.environ},
    )


def _changes(folder: str) -> str:
    """What differs from the commit: changed files, and new files of code that nobody has added yet."""
    changes = [_git(folder, "diff", "HEAD", "--no-color", "--no-ext-diff") or ""]
    root = _git(folder, "rev-parse", "--show-toplevel") or folder
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py") or ""
    for name in sorted(filter(None, new.split("\0"))):
        if sum(map(len, changes)) > 2 * _LONGEST_DIFF:
            break
        with contextlib.suppress(OSError), open(os.path.join(root, name), errors="replace") as file:
            added = "".join(f"+{line}" for line in file.read(2 * _LONGEST_DIFF).splitlines(keepends=True))
            changes.append(f"diff --git a/{name} b/{name}\nnew file\n{added}")
    return "\n".join(filter(None, changes))


def _packages() -> dict[str, str]:
    """The installed packages, by the names of their folders: reading what is in them takes a hundred times as long."""
    found: dict[str, str] = {}
    for place in reversed(sys.path):
        with contextlib.suppress(OSError):
            for entry in os.scandir(place or "."):
                name, _, version = entry.name.removesuffix(".dist-info").rpartition("-")
                if entry.name.endswith(".dist-info") and name:
                    found[name.replace("_", "-").lower()] = version
    return found


def _git(folder: str, *arguments: str) -> str | None:
    try:
        found = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, timeout=_GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.decode(errors="replace").strip() if found.returncode == 0 else None
