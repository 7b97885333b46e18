"""How much memory is left, of the machine or of the container that this process runs in."""

from __future__ import annotations

from pathlib import Path

import psutil

__all__ = ["free_share"]

_CGROUP = Path("/sys/fs/cgroup")


def free_share(cgroup: Path = _CGROUP) -> float:
    """The share of the memory that can still be used, from 0 to 1: of the machine's or the container's, whichever is less."""
    machine = psutil.virtual_memory()
    shares = [machine.available / machine.total]
    if (container := _share_of_container(cgroup)) is not None:
        shares.append(container)
    return min(shares)


def _share_of_container(cgroup: Path) -> float | None:
    """The same for a container by cgroup v2; None without a limit."""
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        facts = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if not limit.isdigit() or int(limit) == 0:
        return None
    cached = int(facts.get("inactive_file", 0))  # what the kernel gives back as soon as it is needed
    return max(0.0, 1 - (used - cached) / int(limit))
