"""The description of a run in MLflow."""

from __future__ import annotations

import pytest

from trainlib._registry.attempts import AttemptRecord, Outcome, has_failed
from trainlib._registry.notes import Section, attempts_section, escaped, flow_run_line, with_flow_run, with_section

LONGEST_TAG = 8000


def test_a_section_is_replaced_and_what_people_have_written_stays():
    note = with_section("by Ada", Section("Trials", ["1 trial"]))
    note = with_section(f"{note}\n\nseen by Bob", Section("Attempts", ["1 worker"]))
    note = with_section(note, Section("Trials", ["2 trials"]))
    assert "1 trial\n" not in note
    parts = ["by Ada", "### Trials", "2 trials", "seen by Bob", "### Attempts", "1 worker"]
    assert [part for part in note.splitlines() if part in parts] == parts
    assert with_section(note, Section("Trials", ["2 trials"])) == note


def test_a_heading_that_a_person_has_written_above_ours_stays():
    mine = "### Trials\n\nnever with a large lr\n\n"
    note = mine + with_section("", Section("Trials", ["1 trial"]))
    assert with_section(note, Section("Trials", ["2 trials"])) == note.replace("1 trial", "2 trials")


@pytest.mark.parametrize("written", [0, 5000, 7450, 9000])
def test_a_note_is_never_longer_than_mlflow_accepts(written):
    rows = [[f"[{number}](#/somewhere/{'x' * 60})", "terminated"] for number in range(1000)]
    before = "x" * written
    note = with_section(before, Section("Trials", ["1000 trials"], ["trial", "state"], rows, ["the end"]))
    assert note.startswith(before)
    if written > 7000:
        assert note == before, "there is no room for it"
        return
    assert len(note) < LONGEST_TAG
    shown = note.count("](#/somewhere/")
    assert shown > 10
    assert f"… and {1000 - shown} more" in note
    assert "the end" in note


def test_the_line_of_a_flow_run_is_replaced_by_that_of_the_next():
    note = with_section(flow_run_line("first", "http://prefect/1"), Section("Attempts", ["1 lost"]))
    again = with_flow_run(note, flow_run_line("second", "http://prefect/2"))
    assert again.startswith("[Prefect flow run second](http://prefect/2)\n\n### Attempts")
    assert "first" not in again
    assert with_flow_run("", "[Prefect flow run x](y)") == "[Prefect flow run x](y)"
    assert with_flow_run("by Ada", "[Prefect flow run x](y)") == "[Prefect flow run x](y)\n\nby Ada"


def test_attempts_are_text_with_cause_rank_node_start_and_lost_work():
    attempts = [
        AttemptRecord(1, Outcome.WORKER, None, 1, "10.0.0.1", 3, "rank 1 died\nits stack"),
        AttemptRecord(2, Outcome.FINISHED, "checkpoint_000004"),
    ]
    cells = [[cell.strip() for cell in row] for row in attempts_section(attempts).rows]
    assert cells == [
        ["2", "finished", "", "", "checkpoint\\_000004", "0", ""],
        ["1", "worker", "1", "10.0.0.1", "the start", "3", "rank 1 died"],
    ]
    assert attempts_section(attempts).intro == ["1 worker, 1 finished"]
    head, line, *rows = [each for each in with_section("", attempts_section(attempts)).splitlines() if each[:1] == "|"]
    assert line == "|---|---|---|---|---|---|---|", "anything else would be no table"
    assert {each.count(" | ") for each in (head, *rows)} == {6}


def test_only_failed_attempts_are_worth_a_note():
    assert has_failed([AttemptRecord(1, Outcome.LOST, None), AttemptRecord(2, Outcome.FINISHED, None)])
    assert not has_failed([AttemptRecord(1, Outcome.PAUSED, None), AttemptRecord(2, Outcome.STOPPED, None)])


def test_a_text_is_shown_as_it_is_and_without_passwords():
    assert escaped("a|b\n<i> @ada") == "a&#124;b &#60;i&#62; &#64;ada"
    assert escaped("********") == "\\*" * 8
    assert "pw" not in escaped("no answer from ftp://ada:pw@host/x")
