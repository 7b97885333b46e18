"""A cursor whose statement has failed is closed, so that nobody waits for its connection to free it."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import AsyncExitStack

import aiosqlite
import pytest

from trainlib._platform.failed_cursors import close_failed_cursors

WAITS_S = 5


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    monkeypatch.setattr(aiosqlite.Cursor, "_execute", aiosqlite.Cursor._execute)  # restored afterwards
    close_failed_cursors()


async def connections(stack: AsyncExitStack, folder) -> list[aiosqlite.Connection]:
    found = []
    for _ in range(2):
        connection = await stack.enter_async_context(aiosqlite.connect(folder / "a.db", isolation_level=None))
        for setting in (f"busy_timeout = {WAITS_S * 1000}", "journal_mode = WAL"):
            await (await connection.execute(f"PRAGMA {setting}")).close()
        found.append(connection)
    await (await found[0].execute("CREATE TABLE t (a)")).close()
    return found


async def failed(first: aiosqlite.Connection, second: aiosqlite.Connection) -> aiosqlite.Cursor:
    """A cursor that has read, and cannot write, because somebody else has written in between."""
    await (await second.execute("BEGIN")).close()
    await (await second.execute("SELECT * FROM t")).close()
    await (await first.execute("INSERT INTO t VALUES (1)")).close()
    cursor = await second.cursor()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await cursor.execute("INSERT INTO t VALUES (2)")
    await (await second.execute("ROLLBACK")).close()
    return cursor


def test_collecting_garbage_does_not_wait_for_a_lock(tmp_path):
    async def wait_for_a_lock() -> None:
        async with AsyncExitStack() as stack:
            first, second = await connections(stack, tmp_path)
            garbage = [await failed(first, second)]
            garbage.append(garbage)  # a cycle, as exceptions and their tracebacks are
            await (await first.execute("BEGIN IMMEDIATE")).close()
            waiting = asyncio.ensure_future(second.execute("INSERT INTO t VALUES (2)"))
            await asyncio.sleep(0.2)
            del garbage
            gc.collect()
            await asyncio.sleep(0)
            assert not waiting.done(), "the lock is still waited for"
            await (await first.execute("COMMIT")).close()
            await (await waiting).close()

    asyncio.run(wait_for_a_lock())


def test_a_cursor_is_closed_when_its_statement_fails_or_is_cancelled(tmp_path):
    async def close() -> None:
        async with AsyncExitStack() as stack:
            first, second = await connections(stack, tmp_path)
            with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
                await (await failed(first, second)).execute("SELECT 1")
            cursor = await second.cursor()
            count = (
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) FROM n"
            )
            counting = asyncio.ensure_future(cursor.execute(count))
            await asyncio.sleep(0.01)
            counting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await counting
            with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
                await cursor.execute("SELECT 1")

    asyncio.run(close())
