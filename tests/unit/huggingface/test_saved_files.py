"""The files of all ranks are brought to rank 0."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

from tests.unit.huggingface.ranks import in_ranks
from trainlib.huggingface._saved_files import collect

MEGABYTES = 64


def peak_kib() -> int:
    """The most memory that this process has held since it was last asked to forget that."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def collected(folder: str | None) -> tuple[int, dict[str, tuple[int, int]], bool]:
    """How many MiB it takes to bring the files of the ranks together, what there is then, and whether they were written anew."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    inner = Path(folder or "saved", "inner")
    inner.mkdir(parents=True, exist_ok=True)
    (inner / f"{rank}.bin").write_bytes(bytes([rank]) * (MEGABYTES << 20))
    dist.barrier()
    changed = (inner / f"{last}.bin").stat().st_mtime_ns if folder else None
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kib()
    collect(inner.parent)
    taken = (peak_kib() - before) >> 10
    found = {each.name: (each.stat().st_size >> 20, each.read_bytes()[-1]) for each in inner.iterdir()}
    is_new = folder is not None and (inner / f"{last}.bin").stat().st_mtime_ns != changed
    dist.barrier()
    return taken, found, is_new


def test_the_files_of_all_ranks_are_brought_together_a_piece_at_a_time():
    (taken, found, _), *others = in_ranks(collected, None, ranks=3)
    assert found == {f"{rank}.bin": (MEGABYTES, rank) for rank in range(3)}
    assert [list(each[1]) for each in others] == [["1.bin"], ["2.bin"]]
    assert taken < MEGABYTES, "of which the others have sent twice as much"


def test_files_on_a_shared_disk_are_left_as_they_are(tmp_path):
    for _, found, is_new in in_ranks(collected, str(tmp_path)):
        assert found == {f"{rank}.bin": (MEGABYTES, rank) for rank in range(2)}
        assert not is_new
