"""A server on this machine answers nobody but its own pages and programs that know it by name."""

from __future__ import annotations

import asyncio

import pytest

from trainlib._platform.guard import ALLOWED_HOSTS, Guard, allowed_hosts, allowed_origins

OWN = (b"host", b"127.0.0.1:4200")


def ask(*headers: tuple[bytes, bytes], kind: str = "http") -> str:
    """What comes of a request: ``answered``, or the status or code of a refusal."""
    sent: list[dict] = []

    async def app(scope, receive, send):
        sent.append({"type": "answered"})

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    guard = Guard(app, hosts=allowed_hosts(4200), origins=allowed_origins(4200))
    asyncio.run(guard({"type": kind, "headers": list(headers)}, receive, send))
    first = sent[0]
    return str(first.get("status") or first.get("code") or first["type"])


@pytest.mark.parametrize("host", [b"127.0.0.1:4200", b"localhost:4200", b"LocalHost:4200", b"[::1]:4200"])
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_its_own_names_are_answered(host, kind):
    assert ask((b"host", host), kind=kind) == "answered"
    assert ask((b"host", host), (b"origin", b"http://" + host), kind=kind) == "answered"


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"evil.example:4200")],
        [(b"host", b"127.0.0.1:4201")],
        [(b"host", b"127.0.0.1")],
        [(b"host", b"10.evil.example:4200")],
        [(b"host", b"127.0.0.1:4200.evil.example")],
        [OWN, (b"host", b"evil.example")],
        [OWN, (b"origin", b"http://evil.example")],
        [OWN, (b"origin", b"http://localhost:8888")],
        [OWN, (b"origin", b"https://127.0.0.1:4200")],
        [OWN, (b"origin", b"null")],
        [OWN, (b"origin", b"")],
        [],
    ],
)
def test_foreign_names_are_refused(headers):
    assert ask(*headers) == "403"
    assert ask(*headers, kind="websocket") == "1008"


def test_a_proxy_may_be_allowed_by_name(monkeypatch):
    proxy, page = (b"host", b"ml.example.org"), (b"origin", b"https://ml.example.org")
    assert ask(proxy, page) == "403"
    monkeypatch.setenv(ALLOWED_HOSTS, " ML.example.org, other.example.org:8443 ")
    assert ask(proxy, page) == "answered"
    assert ask((b"host", b"other.example.org:8443")) == "answered"
    assert ask((b"host", b"other.example.org")) == "403"


def test_what_is_no_request_passes():
    assert ask(kind="lifespan") == "answered"
