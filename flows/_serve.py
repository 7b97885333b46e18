"""The process behind a Prefect server, the embedded one or the platform's: ``python -P trainlib/flows/_serve.py PORT [--alone]``.

It serves Prefect's API on loopback, to nobody but programs on this machine and its own pages, for as long as its standard
input is open. The parent holds the other end, so that however the parent ends, this process ends after it.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from trainlib._execution.network import LOOPBACK
from trainlib._platform.failed_cursors import close_failed_cursors
from trainlib._platform.guard import Guard, allowed_hosts, allowed_origins
from trainlib._platform.retry_when_busy import RetryWhenBusy
from trainlib._schema import templates

__all__ = ["BATCHED", "database_file", "one_at_a_time"]

# Prefect writes each state of a task run by itself, and so falls behind a sweep by many seconds. Many at once cost half as
# much, and are written while the sweep runs.
BATCHED = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",  # in whole seconds: a fraction is taken for none
}

# The last states of a run arrive as events and are written a moment later.
LINGER_S = 2.0
# One that was just told to end, or whose platform was killed, ends within so long.
_ANOTHER_ENDS_S = 10.0


def database_file() -> Path | None:
    """The file of Prefect's database. None if its settings name a database server, or one in memory."""
    from prefect.server.database import provide_database_interface
    from sqlalchemy.engine import make_url

    url = make_url(provide_database_interface().database_config.connection_url)
    if url.get_backend_name() != "sqlite" or not url.database or ":memory:" in url.database:
        return None
    return Path(url.database)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let one server at a time create a database file or bring it up to date, in all processes of this machine.

    Prefect's migrations and its list of block types look first, and then create what is missing. Two servers that find
    an empty database would both create it, and both fail.
    """
    if (database := database_file()) is None:
        yield
        return
    import prefect
    from filelock import FileLock

    os.makedirs(database.parent, 0o700, exist_ok=True)
    with FileLock(f"{database}.lock"):
        templates.create(database, "prefect", prefect.__version__)
        templates.make_private(database)  # it has the key of the Secret blocks in it
        yield


@contextmanager
def alone() -> Iterator[None]:
    """Let no other platform serve the same database file: each would run what was meant for the other's home."""
    if (database := database_file()) is None:
        yield
        return
    from filelock import FileLock, Timeout

    os.makedirs(database.parent, 0o700, exist_ok=True)
    lock = FileLock(f"{database}.up.lock")
    try:
        lock.acquire(timeout=_ANOTHER_ENDS_S)
    except Timeout:
        sys.exit(
            f"The platform of another home serves Prefect's database {database}. End it, or give this one a database of its "
            "own: set PREFECT_HOME, also for scripts."
        )
    with lock:
        yield


def main(port: int) -> None:
    """Serve until the standard input closes, or on SIGTERM."""
    gc.disable()  # there is no garbage among what is imported, and searching it for some takes a fifth of the time
    import uvicorn
    from prefect.server.api.server import create_app

    gc.freeze()  # making the app collects garbage, too
    close_failed_cursors()

    class Server(uvicorn.Server):
        """Starts when no other server is starting. What it finds then is complete."""

        async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
            with one_at_a_time():
                await super().startup(sockets)  # type: ignore[arg-type]

    app = Guard(RetryWhenBusy(create_app()), hosts=allowed_hosts(port), origins=allowed_origins(port))  # type: ignore[arg-type]
    server = Server(uvicorn.Config(app, host=LOOPBACK, port=port, log_level="error", lifespan="on"))
    gc.freeze()
    gc.enable()

    def end_with_parent() -> None:
        sys.stdin.read()
        time.sleep(LINGER_S)
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.run()


if __name__ == "__main__":
    os.environ.update({**BATCHED, **os.environ})  # before Prefect is imported, which is when it reads them
    with alone() if "--alone" in sys.argv else nullcontext():
        main(int(sys.argv[1]))
