"""The end of a run, posted to a webhook. That of trainings is in ``test_cancel.py``."""

from __future__ import annotations

import logging
import time

import pytest
from prefect import flow

from trainlib.flows import _notifying


@pytest.fixture
def ending(monkeypatch):
    """Gives a flow that fails or not, whose runs post their end through the block that is named."""

    def make(block: str):
        @flow(name="ending")
        def ending(fails: bool) -> None:
            if fails:
                raise ValueError("postgres://ada:hunter2@host/db is wrong")

        monkeypatch.setenv(_notifying.SETTING, block)
        _notifying.notifies(ending)
        return ending

    return make


def test_a_run_posts_how_it_ended_and_where_to_look(webhook, ending):
    ran = ending(webhook.block)
    ran(fails=False)
    ran(fails=True, return_state=True)
    completed, failed = webhook.posts
    assert completed["subject"].startswith("Completed: ")
    assert "/runs/flow-run/" in completed["body"]
    assert failed["subject"].startswith("Failed: ")
    assert "is wrong" in failed["body"]
    assert "hunter2" not in failed["body"]


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("slack-webhook", "write the block's type and its name"),
        ("custom-webhook/missing", "Prefect has no such block"),
        ("custom-webhook/tests", "ConnectError"),
    ],
)
def test_a_run_that_cannot_post_its_end_says_why_and_is_no_different(webhook, ending, caplog, monkeypatch, block, why):
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    CustomWebhookNotificationBlock(name="tests", url="http://127.0.0.1:9/secret-token").save("tests", overwrite=True)
    with caplog.at_level(logging.WARNING, logger="trainlib"):
        assert ending(block)(fails=False, return_state=True).is_completed()
    (said,) = (record.getMessage() for record in caplog.records if record.name == "trainlib")
    assert why in said
    assert "secret-token" not in said


def test_a_webhook_that_hangs_holds_nobody_up(webhook, ending, monkeypatch):
    monkeypatch.setattr(_notifying, "_POST_S", 0.2)
    monkeypatch.setattr(_notifying, "_message", lambda *args: time.sleep(30))
    before = time.monotonic()
    assert ending(webhook.block)(fails=False, return_state=True).is_completed()
    assert time.monotonic() - before < 20


def test_nothing_is_posted_unless_a_setting_says_so(webhook, monkeypatch):
    monkeypatch.delenv(_notifying.SETTING, raising=False)

    @flow
    def quiet() -> None:
        pass

    _notifying.notifies(quiet)
    assert quiet.on_completion_hooks == []
