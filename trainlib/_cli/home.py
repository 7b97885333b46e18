"""``backup`` and ``restore``: copies of the home folder."""

from __future__ import annotations

from trainlib import _storage as storage
from trainlib._cli import output
from trainlib._cli.options import Folder, Json

__all__ = ["COMMANDS"]


def backup(folder: Folder, is_json: Json = False) -> None:
    """Copy the home folder and both local databases into a new folder, also while trainings run."""
    from trainlib._backup import Backup, back_up
    from trainlib.flows._serve import database_file

    made = back_up(folder.absolute(), storage.home(), database_file())

    def show(made: Backup) -> None:
        output.line(f"{storage.home()} is copied to {folder.absolute()}, {made.checkpoints} checkpoints")
        for location in made.elsewhere:
            output.line(f"Not copied, since it is not in that folder: {location}")

    output.emit(made, is_json, show)


def restore(folder: Folder, is_json: Json = False) -> None:
    """Make an empty home folder what a backup was made of."""
    from trainlib._backup import Backup, put_back
    from trainlib.flows._serve import database_file

    def show(made: Backup) -> None:
        output.line(f"{storage.home()} is what {made.home} was, {made.checkpoints} checkpoints")

    output.emit(put_back(folder.absolute(), storage.home(), database_file()), is_json, show)


COMMANDS = (backup, restore)
