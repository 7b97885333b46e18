"""A page's request that finds Prefect's database busy is asked again."""

from __future__ import annotations

import asyncio

import pytest

from trainlib._platform.retry_when_busy import RetryWhenBusy

PAGE = [(b"host", b"127.0.0.1:4200"), (b"origin", b"http://127.0.0.1:4200")]


class Busy:
    """Answers 503 some times, raising what it was for, and then 201 with what it was sent."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked = 0

    async def __call__(self, scope, receive, send) -> None:
        scope["seen"] = True
        self.asked += 1
        body = (await receive())["body"]
        status = 503 if self.asked <= self.times else 201
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})
        if status == 503:
            raise RuntimeError("database is locked")


def ask(app: Busy, method: str = "POST", headers=PAGE) -> list:
    """The status and the body of the answer."""
    parts = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c", "more_body": False},
    ]
    sent: list = []

    async def receive():
        return parts.pop(0)

    async def send(message):
        sent.append(message.get("status", message.get("body")))

    asyncio.run(RetryWhenBusy(app)({"type": "http", "method": method, "headers": headers}, receive, send))
    return sent


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("trainlib._platform.retry_when_busy._PAUSES_S", (0.0, 0.0, 0.0))


def test_a_page_gets_the_answer_that_comes_when_the_database_is_free():
    app = Busy(times=2)
    assert ask(app) == [201, b"abc"]
    assert app.asked == 3


def test_one_that_stays_busy_is_answered_so():
    app = Busy(times=10)
    with pytest.raises(RuntimeError, match="locked"):
        ask(app)
    assert app.asked == 4


@pytest.mark.parametrize(("method", "headers"), [("GET", PAGE), ("POST", PAGE[:1])])
def test_programs_ask_again_by_themselves(method, headers):
    app = Busy(times=1)
    with pytest.raises(RuntimeError):
        ask(app, method, headers)
    assert app.asked == 1


def test_an_error_that_is_not_about_a_busy_database_is_raised_at_once():
    async def broken(scope, receive, send) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        ask(broken)
