"""The newest checkpoint inside a worker: a snapshot, the same for all ranks, on disk or in memory."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from trainlib import Checkpoint, CheckpointConfig
from trainlib._execution.events import Report
from trainlib._execution.held import Held
from trainlib._execution.outbox import Outbox
from trainlib._execution.snapshots import linked_copy, pack_snapshot, write_snapshot
from trainlib._execution.worker_session import Assignment, WorkerSession
from trainlib._registry.kept_checkpoints import KeptCheckpoints
from trainlib._registry.retention import SavedCheckpoint
from trainlib.errors import CheckpointNotFoundError, OutOfStepError
from trainlib.session import TrainContext
from trainlib.torch import TorchCheckpoint


def session_of(folder: Path | None, *, world_size: int = 1, **config) -> tuple[WorkerSession, Outbox]:
    outbox = Outbox()
    assignment = Assignment(
        context=TrainContext(world_size=world_size),
        iterations_done=0,
        next_checkpoint=0,
        resume_from=Checkpoint.from_dict({"epoch": -1}),
        checkpoint_config=CheckpointConfig(**config),
        staging=str(folder) if folder is not None else None,
        shares_disk=True,
        in_step=False,
        environment={},
        import_path=[],
    )
    return WorkerSession(assignment, outbox), outbox


def staged(outbox: Outbox):
    return [event.checkpoint for event in outbox.drain(0.1) if isinstance(event, Report)]


def test_the_newest_checkpoint_is_a_snapshot_that_outlives_what_was_saved(tmp_path):
    session, outbox = session_of(tmp_path / "staging")
    latest = session.latest_checkpoint()
    assert latest is not None
    assert latest.to_dict() == {"epoch": -1}, "what it was given"
    state = {"weights": [1, 2]}
    session.report({}, Checkpoint.from_dict(state))
    state["weights"].append(3)
    first = session.latest_checkpoint()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a")
    session.report({}, TorchCheckpoint.from_directory(tmp_path / "files"))
    shutil.rmtree(tmp_path / "files")
    for each in staged(outbox):  # committed, and deleted by retention
        shutil.rmtree(Path(each.path).parent)
    second = session.latest_checkpoint()
    assert isinstance(second, TorchCheckpoint)
    assert second.to_dict() == {"a.txt": b"a"}
    assert first is not None
    assert first.to_dict()["weights"] == [1, 2], "it stays for whoever holds it"
    del first, second
    assert len(list((tmp_path / "staging").iterdir())) == 1, "and goes with it"


def test_what_a_worker_leaves_on_a_disk_of_its_own_is_removed(tmp_path):
    staging = tmp_path / "trainlib-run"
    session, _ = session_of(staging, world_size=2)
    session.report({}, Checkpoint.from_dict({"epoch": 0}))
    assert any(staging.iterdir())
    session.clear_staging()
    assert not staging.exists(), "before the worker is ended"
    assert tmp_path.exists()


class OwnCheckpoint(Checkpoint):
    """It is made of something else than trainlib's."""

    def __init__(self, model: str) -> None:
        super().__init__(data_dict={"model": model})


def test_a_class_of_ones_own_may_be_made_of_anything(tmp_path):
    for config in ({}, {"num_to_keep": 0}):
        session, _ = session_of(tmp_path / "staging", **config)
        session.report({}, OwnCheckpoint("small"))
        latest = session.latest_checkpoint()
        assert latest is not None
        assert latest.to_dict()["model"] == "small"
    packed = OwnCheckpoint("small").to_bytes()
    assert OwnCheckpoint.from_bytes(packed).to_dict() == {"model": "small"}
    (tmp_path / "temporary").mkdir()
    temporary = OwnCheckpoint._in_temporary_folder(tmp_path / "temporary")
    assert isinstance(temporary, OwnCheckpoint)
    del temporary
    assert not (tmp_path / "temporary").exists()


def test_a_rank_that_is_ahead_waits_for_rank_0(tmp_path):
    session, _ = session_of(tmp_path, world_size=2)
    assert not session.hand_out_latest((1, 0), timeout=0.01).is_reached
    threading.Timer(0.1, session.report, ({}, Checkpoint.from_dict({"epoch": 0}))).start()
    found = session.hand_out_latest((1, 0), timeout=10)
    assert found.is_reached
    assert found.checkpoint is not None
    assert found.checkpoint.to_dict()["epoch"] == 0
    assert not session.hand_out_latest((1, 1), timeout=0.01).is_reached, "that rank has saved one since"
    session.save(Checkpoint.from_dict({"epoch": 1}))
    found = session.hand_out_latest((1, 1), timeout=0)
    assert found.checkpoint is not None
    assert found.checkpoint.to_dict()["epoch"] == 1
    session.has_ended()
    assert session.hand_out_latest((9, 0), timeout=0).is_reached, "rank 0 saves no more"


def test_a_rank_that_is_behind_gets_what_rank_0_had_at_its_place(tmp_path):
    session, _ = session_of(tmp_path, world_size=2)
    session.report({}, None)
    for epoch in range(3):
        session.report({}, Checkpoint.from_dict({"epoch": epoch}))
    session.save(Checkpoint.from_dict({"epoch": 3}))

    def epoch_at(*place: int) -> int | None:
        checkpoint = session.hand_out_latest((place[0], place[1]), timeout=0).checkpoint
        return checkpoint.to_dict()["epoch"] if checkpoint is not None else None

    assert [epoch_at(1, 0), epoch_at(2, 0), epoch_at(2, 1), epoch_at(4, 0), epoch_at(4, 1)] == [None, 0, 0, 2, 3]
    session.slowest_is_at(3)
    assert [epoch_at(3, 0), epoch_at(4, 0)] == [1, 2]
    kept = [path for path in tmp_path.iterdir() if path.name.startswith("checkpoint_")]
    assert len(kept) == 3, "that of iteration 2 is asked for no more"
    for epoch in range(4, 14):
        session.save(Checkpoint.from_dict({"epoch": epoch}))
    assert [epoch_at(4, 1), epoch_at(4, 11)] == [3, 13]
    with pytest.raises(
        OutOfStepError, match=r"after 3 report\(s\) .* Every rank must call save_checkpoint\(\) equally often"
    ):
        epoch_at(3, 0)


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL])
def test_where_there_are_no_hard_links_files_are_copied(tmp_path, monkeypatch, code):
    def refuse(*paths: str) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    snapshot = tmp_path / "random" / "checkpoint_000000"
    snapshot.mkdir(parents=True)
    (snapshot / "weights").write_bytes(b"w")
    assert (linked_copy(snapshot) / "weights").read_bytes() == b"w"
    code = errno.ENOSPC
    with pytest.raises(OSError, match="No space left"):  # it is said once, and not for a copy that has no room either
        linked_copy(snapshot)


def test_with_num_to_keep_0_nothing_is_written(tmp_path):
    session, outbox = session_of(tmp_path / "staging", num_to_keep=0)
    session.report({}, Checkpoint.from_dict({"epoch": 0}))
    (each,) = staged(outbox)
    assert Checkpoint.from_bytes(each.packed).to_dict()["_current_checkpoint_id"] == 0
    latest = session.latest_checkpoint()
    assert latest is not None
    assert latest.to_dict()["epoch"] == 0
    assert not (tmp_path / "staging").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is empty"):
        pack_snapshot(Checkpoint.from_directory(tmp_path / "empty"), 1, None)


def test_a_checkpoint_in_the_memory_of_a_ray_that_has_ended_is_gone():
    lost = Held(reference=None, session="an earlier one")
    kept = KeptCheckpoints(client=None, files=None, config=CheckpointConfig(num_to_keep=0), saved=[], patience=None)  # type: ignore[arg-type]
    kept.hold(SavedCheckpoint(3, 4, "", "", held=lost))
    assert [each.index for each in kept.newer_than(2)] == [3], "callbacks hear of it while it is there"
    assert kept.newest() is None, "the next attempt starts from the beginning"
    with pytest.raises(CheckpointNotFoundError, match="keep a checkpoint: num_to_keep=1"):
        Checkpoint._of_held(lost).to_dict()


def test_a_session_that_writes_no_checkpoints_deletes_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session, _ = session_of(None)
    session.clear_staging()
    assert tmp_path.exists()


@pytest.mark.parametrize("folders", [[], ["weights/layer"]], ids=["nothing", "empty folders"])
def test_a_directory_without_files_is_refused(tmp_path, folders):
    """Remote stores have no empty folders: nobody could read such a checkpoint there."""
    source = tmp_path / "empty"
    for folder in ("", *folders):
        (source / folder).mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint.from_directory(source)
    with pytest.raises(ValueError, match=r"is empty: write the checkpoint's files before report\(\)"):
        write_snapshot(checkpoint, tmp_path / "staged", 0, None)
    with pytest.raises(ValueError, match=r"is empty: write the checkpoint's files before report\(\)"):
        pack_snapshot(checkpoint, 0, None)
    with pytest.raises(ValueError, match="has no files in it, so nobody could read it at memory://bucket/empty"):
        checkpoint.to_uri("memory://bucket/empty")
