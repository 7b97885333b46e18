"""Who may ask a server on this machine: nobody but pages and programs that know it by its own name.

A browser lets every web page send requests to ``127.0.0.1``. Such a request names the page as its ``Origin``, or, if the page's
own name was made to resolve to ``127.0.0.1``, that name as its ``Host``.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from trainlib._platform.asgi import App, Receive, Scope, Send

__all__ = ["ALLOWED_HOSTS", "Guard", "allowed_hosts", "allowed_origins"]

# More names by which the servers may be asked, e.g. the one of a proxy in front of them: "ml.example.org,ml.example.org:8443".
ALLOWED_HOSTS = "TRAINLIB_ALLOWED_HOSTS"


def allowed_hosts(port: int) -> list[str]:
    """The names by which a server on a port may be asked.

    Example:
        >>> allowed_hosts(4200)[:3]
        ['127.0.0.1:4200', 'localhost:4200', '[::1]:4200']
    """
    return [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", *_more_hosts()]


def allowed_origins(port: int) -> list[str]:
    """The pages that may ask it: its own. Behind a proxy these may be encrypted."""
    return [f"http://{host}" for host in allowed_hosts(port)] + [f"https://{host}" for host in _more_hosts()]


def _more_hosts() -> list[str]:
    return [host.strip().lower() for host in os.environ.get(ALLOWED_HOSTS, "").split(",") if host.strip()]


class Guard:
    """An ASGI app in front of another: refuses requests and websockets with a foreign ``Host`` or ``Origin``.

    It does not ask for a password. The app behind it does that.
    """

    def __init__(self, app: App, *, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._allowed = {b"host": frozenset(hosts), b"origin": frozenset(origins)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["headers"]) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": refusal})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": refusal.encode()})

    def _refusal(self, headers: Collection[tuple[bytes, bytes]]) -> str | None:
        """Why a request is refused; None if it is not."""
        has_host = False
        for name, value in headers:
            given = value.decode("latin-1").lower()
            if name in self._allowed and given not in self._allowed[name]:
                return f"{name.decode().capitalize()} {given!r} may not ask here. To allow a host, set {ALLOWED_HOSTS}."
            has_host = has_host or name == b"host"
        return None if has_host else "A request has to name its Host."
