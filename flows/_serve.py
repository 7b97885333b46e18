"""The process behind the embedded Prefect server: ``python -m trainlib.flows._serve PORT``.

It serves Prefect's API on loopback for as long as its standard input is open. The parent holds the other
end, so that however the parent ends, this process ends after it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["database_file", "one_at_a_time"]

# The last states of a run arrive as events and are written a moment later.
LINGER_S = 2.0


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
    """Let one server at a time bring a database file up to date, in all processes of this machine.

    Prefect's migrations and its list of block types look first, and then create what is missing. Two servers that find
    an empty database would both create it, and both fail.
    """
    if (database := database_file()) is None:
        yield
        return
    from filelock import FileLock

    os.makedirs(database.parent, exist_ok=True)
    with FileLock(f"{database}.lock"):
        yield


def main() -> None:
    import uvicorn
    from prefect.server.api.server import create_app

    class Server(uvicorn.Server):
        """Starts when no other server is starting. What it finds then is complete."""

        async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
            with one_at_a_time():
                await super().startup(sockets)  # type: ignore[arg-type]

    server = Server(
        uvicorn.Config(create_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error", lifespan="on")
    )

    def end_with_parent() -> None:
        sys.stdin.read()
        time.sleep(LINGER_S)
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.run()


if __name__ == "__main__":
    main()
