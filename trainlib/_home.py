"""The version of trainlib's home folder. One that a newer trainlib wrote is left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

from trainlib._format import FORMAT
from trainlib.errors import FormatError

__all__ = ["FORMAT_FILE", "read_format", "require_home", "require_readable"]

FORMAT_FILE = "format.json"


def require_home(home: Path) -> None:
    """Make sure that this trainlib can use a home folder, and write down which format it has from now on.

    A home without a version was written before there were versions, or is empty. Nothing in it has to be changed: what
    older runs lack is known to be missing.

    Raises:
        FormatError: a newer trainlib wrote it.
    """
    file = home / FORMAT_FILE
    found = read_format(file)
    if found == FORMAT:
        return
    if found is not None:
        require_readable(found, f"the folder {home}", "Or use another folder: set TRAINLIB_HOME.")
    home.mkdir(parents=True, exist_ok=True)
    if home.stat().st_uid == os.getuid():
        home.chmod(0o700)  # databases, settings and logs are nobody else's business
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.write_text(json.dumps({"format": FORMAT}) + "\n")
    os.replace(aside, file)  # another process never reads half of it


def require_readable(version: int, what: str, otherwise: str = "") -> None:
    """Refuse what a newer trainlib wrote.

    Raises:
        FormatError: it is newer.

    Example:
        >>> require_readable(1, "the run 'digits'")
        >>> try:
        ...     require_readable(99, "the run 'digits'")
        ... except FormatError as error:
        ...     print(str(error).partition(", and")[0])
        the run 'digits' was written by a newer trainlib (format 99)
    """
    if version > FORMAT:
        raise FormatError(
            f"{what} was written by a newer trainlib (format {version}), and this one reads up to format {FORMAT}. Upgrade "
            f"trainlib. {otherwise}".rstrip()
        )


def read_format(file: Path) -> int | None:
    """The format that a home folder has, from its file. None if there is no such file.

    Raises:
        FormatError: the file is broken.
    """
    try:
        return int(json.loads(file.read_text())["format"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{file} is broken ({error}). Restore it from a backup, or delete it.") from error
