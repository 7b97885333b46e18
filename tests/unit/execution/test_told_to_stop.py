"""A function that is told to stop saves its state once, with the report at which it stops."""

from __future__ import annotations

import threading
import time

import pytest

from trainlib._execution.events import Report
from trainlib._execution.outbox import Outbox
from trainlib._execution.worker_session import Assignment, StopTraining, WorkerSession
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.session import TrainContext

SAVE_AT = 3


class Rank:
    """Reports until it is stopped, and saves by itself in one round. Before one, it may be made to wait."""

    def __init__(self, folder, rank: int = 0, *, in_step: bool, pause_after: int | None = None, **config) -> None:
        self.outbox = Outbox()
        self.session = WorkerSession(
            Assignment(
                context=TrainContext(world_rank=rank, world_size=2 if in_step else 1),
                iterations_done=0,
                next_checkpoint=0,
                resume_from=None,
                checkpoint_config=CheckpointConfig(**config),
                staging=str(folder),
                shares_disk=True,
                in_step=in_step,
                environment={},
                import_path=[],
            ),
            self.outbox,
        )
        self.round = 0
        self.made = 0
        self.paused = threading.Event()
        self.may_go_on = threading.Event()
        self._pause_after = pause_after
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _save(self) -> Checkpoint:
        self.made += 1
        return Checkpoint.from_dict({"round": self.round})

    def _run(self) -> None:
        try:
            while True:
                if self.round == self._pause_after:
                    self.paused.set()
                    assert self.may_go_on.wait(10)
                self.round += 1
                own = self._save() if self.round == SAVE_AT else None
                self.session.report({"loss": 1.0 / self.round}, own, when_stopped=self._save)
        except StopTraining:
            pass

    def until_reported(self, reports: int) -> None:
        deadline = time.monotonic() + 10
        while self.session.reports < reports:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def ended(self) -> list[Report]:
        self.thread.join(10)
        assert not self.thread.is_alive()
        return [event for event in self.outbox.drain(0.1) if isinstance(event, Report)]


def test_in_step_the_checkpoint_follows_the_report_and_repeats_no_metric(tmp_path):
    rank = Rank(tmp_path, in_step=True, checkpoint_score_attribute="loss")
    rank.until_reported(1)
    rank.session.slowest_is_at(1)
    rank.until_reported(2)
    rank.session.stop(1)
    _, second, last = rank.ended()
    assert (second.iteration, second.checkpoint) == (2, None)
    assert (last.iteration, last.metrics, last.timestamp) == (2, None, second.timestamp)
    assert (last.checkpoint.reported, last.checkpoint.score) == ({"loss": 0.5}, 0.5)
    assert rank.made == 1, "no round before saved anything"
    assert second.saves_when_stopped


def test_a_report_that_has_a_checkpoint_needs_no_second_one(tmp_path):
    rank = Rank(tmp_path, in_step=True)
    rank.session.slowest_is_at(SAVE_AT - 1)
    rank.until_reported(SAVE_AT)
    rank.session.stop(SAVE_AT - 1)
    assert [report.checkpoint is not None for report in rank.ended()] == [False, False, True]
    assert rank.made == 1


@pytest.mark.parametrize("in_step", [True, False])
def test_whoever_is_told_between_two_reports_reports_the_round_with_its_checkpoint(tmp_path, in_step):
    done = 4
    rank = Rank(tmp_path, in_step=in_step, pause_after=done, max_staged=1)
    if in_step:
        rank.session.slowest_is_at(5)
    assert rank.paused.wait(10)
    rank.session.stop(5)
    rank.may_go_on.set()
    *_, last = rank.ended()
    assert (last.iteration, last.metrics) == (done + 1, {"loss": 1.0 / (done + 1)})
    assert last.checkpoint is not None


def test_a_checkpoint_that_waits_for_the_store_is_kept_when_the_training_is_stopped(tmp_path):
    rank = Rank(tmp_path, in_step=True, max_staged=1)
    rank.session._waiting_room.enter(0, 1)  # the store is behind
    rank.session.slowest_is_at(SAVE_AT - 1)
    rank.until_reported(SAVE_AT - 1)
    time.sleep(0.1)
    assert rank.session.reports == SAVE_AT - 1, "it waits"
    rank.session.stop(SAVE_AT - 1)
    *_, last = rank.ended()
    assert (last.iteration, last.metrics) == (SAVE_AT, {"loss": 1.0 / SAVE_AT})
    assert last.checkpoint is not None


def test_ranks_in_step_end_at_the_same_report_whichever_call_comes_first(tmp_path):
    """Both were let go on from report 1, and are stopped after it. In one of them, the stop overtakes that."""
    first, second = Rank(tmp_path / "0", in_step=True), Rank(tmp_path / "1", 1, in_step=True)
    for rank in (first, second):
        rank.until_reported(1)
    first.session.slowest_is_at(1)
    first.until_reported(2)
    first.session.stop(1)
    second.session.stop(1)
    assert [report.iteration for report in first.ended()] == [1, 2, 2]
    assert [report.iteration for report in second.ended()] == [1]
    assert first.round == second.round == 2, "neither is alone in a round"
    assert second.made == 0, "rank 0 saves"
