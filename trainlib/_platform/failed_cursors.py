"""Closes a cursor of SQLite's whose statement has failed, in the thread of its connection.

SQLAlchemy leaves such a cursor to Python's garbage collector, which runs in any thread, as a rule that of the event loop. To free it,
SQLite waits until its connection is idle. If the connection waits for a lock just then, and the one who has the lock waits for the event
loop, then a server does nothing until the connection gives up: Prefect's lets it wait for 60 s.
"""

from __future__ import annotations

from typing import Any

__all__ = ["close_failed_cursors"]


def close_failed_cursors() -> None:
    """From now on, do so with all connections of this process that asyncio uses."""
    import aiosqlite

    cursors: Any = aiosqlite.Cursor
    execute = cursors._execute

    async def execute_or_close(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await execute(self, function, *args, **kwargs)
        except BaseException:
            # Also one that was cancelled: its thread closes it when the statement has ended. Nobody waits for that.
            self._conn._tx.put_nowait((None, self._cursor.close))
            raise

    cursors._execute = execute_or_close
