"""A script from its start to its end, as its user waits for it."""

import subprocess
import sys
import time

from bench.scripts.side import finish, folder, marked

LAST_LINE = "last-line"


def time_script(script: str) -> None:
    """Run a script that marks its last line. All of it counts, also what it does after that line."""
    started = time.time()
    subprocess.run([sys.executable, "-m", f"bench.scripts.{script}", str(folder())], check=True)
    ended = time.time()
    finish(whole_s=ended - started, leaving_s=ended - marked(folder() / LAST_LINE))
