"""The user's code: the folder that it is in, and what of that folder is sent to machines that do not have it."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlib import _storage as storage
from trainlib.errors import CodeTooLargeError

__all__ = ["EXCLUDES", "Measured", "Unsent", "excluded", "limit_mib", "measure", "quiet", "script_folder"]

# Besides what Ray itself leaves out: .git, .venv, venv, __pycache__, and what .gitignore and .rayignore name.
EXCLUDES = (
    *("node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".ipynb_checkpoints", ".idea", ".vscode"),
    *("mlruns", "mlartifacts", "wandb", "lightning_logs", "*.db", "*.db-wal", "*.db-shm", "*.db-journal"),
    # Passwords and keys.
    *(
        ".env",
        ".env.*",
        ".netrc",
        ".pypirc",
        ".git-credentials",
        ".ssh",
        ".aws",
        "*.pem",
        "*.key",
        "id_rsa",
        "id_ed25519",
    ),
)
_MIB = 1024**2
_MOST_FILES = 20_000
_NAMED = 5
quiet = logging.Logger("code", logging.CRITICAL + 1)
"""For Ray's remarks on each file and folder. What matters of them is in our own errors."""


def limit_mib() -> float:
    """How much code may be sent: ``TRAINLIB_CODE_LIMIT_MIB``, 100 by default. 0 sends no script's folder at all."""
    return float(os.environ.get("TRAINLIB_CODE_LIMIT_MIB", "100"))


@dataclass(frozen=True)
class Unsent:
    """A script's folder that is not sent as a whole, and why."""

    folder: Path
    why: str


def script_folder() -> Path | Unsent:
    """The folder that this process imports the user's own modules from.

    It is that of the script. With ``python -m``, in a notebook, and where an installed program such as ``prefect`` or
    ``pytest`` runs the code, it is the current one.
    """
    folder = _folder_of_main() or Path.cwd()
    if limit_mib() == 0:
        return Unsent(folder, "TRAINLIB_CODE_LIMIT_MIB is 0")
    # The root and /home hold the home folder too.
    if Path.home().resolve().is_relative_to(folder) or folder == Path(tempfile.gettempdir()).resolve():
        return Unsent(folder, "it holds much more than a program. Move the script into a folder of its own")
    return folder


def _folder_of_main() -> Path | None:
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is None or getattr(main, "__spec__", None) is not None:
        return None
    folder = Path(file).resolve().parent
    installed = folder.is_relative_to(Path(sys.prefix).resolve()) or folder.name == "bin"
    return None if installed else folder


@dataclass(frozen=True)
class Measured:
    """How much there is to send."""

    files: int
    size: int

    def __str__(self) -> str:
        return f"{self.files} file(s), {self.size / _MIB:.1f} MiB"


def excluded(folder: Path, excludes: Sequence[str]) -> list[str]:
    """What is not sent of a folder, by Ray's patterns: ours, the user's, and trainlib's home if it is in there."""
    home = storage.home().resolve()
    own = [f"/{home.relative_to(folder)}"] if home != folder and home.is_relative_to(folder) else []
    return [*EXCLUDES, *own, *excludes]


def measure(folder: Path, excludes: Sequence[str]) -> Measured:
    """How much of a folder would be sent.

    Args:
        folder: The folder.
        excludes: What is left out of it, besides what Ray leaves out.

    Raises:
        CodeTooLargeError: it is more than :func:`limit_mib`. The message names the largest files.
    """
    from ray._private.ray_constants import RAY_RUNTIME_ENV_IGNORE_GITIGNORE, get_runtime_env_default_excludes
    from ray._private.runtime_env import packaging

    sizes: dict[Path, int] = {}

    def add(path: Path) -> None:
        if path.is_file():
            sizes[path] = path.stat().st_size
        if len(sizes) > _MOST_FILES:
            raise CodeTooLargeError(_too_large(folder, sizes))

    leaves_out = packaging._get_excludes(folder, [*get_runtime_env_default_excludes(), *excludes])
    honours_gitignore = os.environ.get(RAY_RUNTIME_ENV_IGNORE_GITIGNORE, "0") != "1"
    packaging._dir_travel(folder, [leaves_out], add, include_gitignore=honours_gitignore, logger=quiet)
    if sum(sizes.values()) > limit_mib() * _MIB:
        raise CodeTooLargeError(_too_large(folder, sizes))
    return Measured(len(sizes), sum(sizes.values()))


def _too_large(folder: Path, sizes: dict[Path, int]) -> str:
    """Names the largest files, and the folders with most in them: it may be many small files."""
    files = sorted(sizes, key=lambda file: -sizes[file])[:_NAMED]
    named = ", ".join(f"{file.relative_to(folder)} ({sizes[file] / _MIB:.1f} MiB)" for file in files)
    total = f"{sum(sizes.values()) / _MIB:.0f} MiB in {len(sizes)} files"
    if len(sizes) > _MOST_FILES:
        counts: dict[str, int] = {}
        for file in sizes:
            top = file.relative_to(folder).parts[0]
            counts[top] = counts.get(top, 0) + 1
        most = max(counts, key=lambda name: counts[name])
        total, named = f"more than {_MOST_FILES} files", f"{most} ({counts[most]} files so far), {named}"
    pattern = str(files[0].relative_to(folder)) if len(sizes) <= _MOST_FILES else most
    return (
        f"the code in {folder} is sent to the cluster, but it has {total}; up to {limit_mib():g} MiB are sent. The largest: "
        f"{named}. Leave out what the training does not import: runtime_env={{'excludes': [{pattern!r}]}} in RunConfig, or "
        "a line in .gitignore or .rayignore. TRAINLIB_CODE_LIMIT_MIB sets another limit, and 0 sends nothing."
    )
