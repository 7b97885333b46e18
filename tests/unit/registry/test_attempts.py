"""The records that attempts leave."""

from __future__ import annotations

import json

from trainlib._registry.attempts import AttemptRecord, Outcome, attempt_tags, recorded_attempts


def test_a_record_can_be_read_back():
    record = AttemptRecord(2, Outcome.WORKER, "checkpoint_000004", 1, "10.0.0.1", 3, "it died")
    stored = attempt_tags(record)
    assert stored.keys() == {"trainlib.attempt.002", "trainlib.attempts"}
    assert stored["trainlib.attempts"] == "2"
    assert json.loads(stored["trainlib.attempt.002"])["outcome"] == "worker"
    assert recorded_attempts(stored) == [record]


def test_records_are_read_in_the_order_of_the_attempts():
    stored = {}
    for number in (1000, 2, 101, 1):
        stored |= attempt_tags(AttemptRecord(number, Outcome.LOST, None))
    assert [record.number for record in recorded_attempts({**stored, "other": "tag"})] == [1, 2, 101, 1000]


def test_a_long_message_is_cut():
    (record,) = recorded_attempts(attempt_tags(AttemptRecord(1, Outcome.USER, None, message="x" * 5000)))
    assert record.message == "x" * 1000
