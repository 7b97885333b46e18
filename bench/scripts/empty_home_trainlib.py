"""From fit() to the first line of the training function in a home where nothing is yet: both databases are created."""

import os

from bench.scripts.side import finish, folder

os.environ["TRAINLIB_HOME"] = str(folder() / "home")
os.environ["PREFECT_HOME"] = str(folder() / "home" / "prefect")

from bench.scripts.starting import start_seconds

finish(first_s=start_seconds("first"))
