"""What a training has failed with, kept in its folder: for people as a text, and as the exception itself."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from pathlib import Path

from trainlib import _storage as storage
from trainlib._execution.carried_errors import portable, revived
from trainlib._masked_text import masked_text
from trainlib.errors import TrainingFailedError

__all__ = ["ERROR_PICKLE", "ERROR_TEXT", "forget_error", "keep_error", "kept_error"]

ERROR_TEXT = "error.txt"
ERROR_PICKLE = "error.pkl"


def keep_error(failure: TrainingFailedError, folder: Path) -> str | None:
    """Write what a training has failed with into its folder. Gives what a person should know if that cannot be done."""
    text = "".join(traceback.format_exception(type(failure), failure, None))
    try:
        _write(folder / ERROR_TEXT, masked_text(text).encode(errors="replace"))
        _write(folder / ERROR_PICKLE, portable(failure.raised) if failure.raised is not failure else b"")
    except OSError as error:
        return f"what it failed with could not be written to {folder}: {error}"
    return None


def kept_error(folder: Path, *, trust: bool = False) -> BaseException | None:
    """What the training function raised, as :func:`keep_error` has kept it; None if that is not known here.

    It is a pickle, which can run any code: it is loaded only if folder and file belong to this user, or with ``trust``.
    """
    file = folder / ERROR_PICKLE
    try:
        return revived(file.read_bytes()) if trust or (storage.is_own(folder) and storage.is_own(file)) else None
    except OSError:
        return None


def forget_error(folder: Path) -> None:
    """It has not failed after all."""
    for name in (ERROR_TEXT, ERROR_PICKLE):
        with suppress(OSError):  # it has trained, and that is what counts
            (folder / name).unlink(missing_ok=True)


def _write(file: Path, data: bytes) -> None:
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        output.write(data)
