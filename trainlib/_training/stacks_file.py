"""What the ranks of an attempt were doing when one of them hung, kept in a file."""

from __future__ import annotations

import os
from pathlib import Path

from trainlib.errors import TrainingFailedError

__all__ = ["keep_stacks"]


def keep_stacks(stacks: str, failure: TrainingFailedError, folder: Path) -> str | None:
    """Write what the ranks of a failed attempt were doing into the training's folder, and say so in the error.

    Gives what a person should know if that cannot be done: what the attempt failed with matters more.
    """
    file = folder / f"stacks_attempt_{failure.attempt:03d}.txt"
    try:
        with open(
            os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", errors="replace"
        ) as output:
            output.write(stacks + "\n")
    except OSError as error:
        return f"what the ranks were doing could not be written to {file}: {error}"
    failure.stacks_file = str(file)
    failure.add_note(f"\nAll threads of all ranks: {file}")
    return None
