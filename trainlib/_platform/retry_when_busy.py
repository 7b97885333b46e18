"""Asks Prefect's server again for a browser whose request found its database busy.

With SQLite, a request that reads and then writes fails if another one has written in between. Prefect answers 503 then, having
changed nothing, and its clients ask again. Its pages do not: whoever presses Run would see an error, and no run.
"""

from __future__ import annotations

import asyncio

from trainlib._platform.asgi import App, Message, Receive, Scope, Send

__all__ = ["RetryWhenBusy"]

_BUSY = 503
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)


class RetryWhenBusy:
    """An ASGI app in front of another: repeats what a page asks for a few times, as long as the answer is 503."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_from_a_page(scope):
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        for pause in _PAUSES_S:
            if await self._is_answered(scope, _replayed(body, receive), send):
                return
            await asyncio.sleep(pause)
        await self._app(scope, _replayed(body, receive), send)

    async def _is_answered(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Pass a request on, and its answer back, unless that is 503."""
        is_busy = False

        async def send_unless_busy(message: Message) -> None:
            nonlocal is_busy
            is_busy = is_busy or message.get("status") == _BUSY
            if not is_busy:
                await send(message)

        try:
            await self._app(dict(scope), receive, send_unless_busy)
        except Exception:  # what the 503 was made of is raised after it, for the log
            if not is_busy:
                raise
        return not is_busy


def _is_from_a_page(scope: Scope) -> bool:
    """Whether a browser asks for a change. It then names the page, as programs do not."""
    return (
        scope["type"] == "http"
        and scope["method"] in _CHANGING
        and any(name == b"origin" for name, _ in scope["headers"])
    )


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body once more, and then what still comes: that the browser has gone."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
