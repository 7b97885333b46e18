"""How many trials fit on the cluster at once. Pure: the caller passes the cluster's resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainlib.config import ScalingConfig
from trainlib.errors import CapacityError

__all__ = ["has_room", "require_room"]

Resources = Mapping[str, float]


def has_room(total: Resources, spare_cpus: float, running: Iterable[ScalingConfig], following: ScalingConfig) -> bool:
    """Whether there is room for one more gang. The first always starts: if it can never fit, its own error says so.

    Example:
        >>> two = ScalingConfig(num_workers=2)
        >>> has_room({"CPU": 6}, 2, [two], two), has_room({"CPU": 6}, 2, [two, two], two)
        (True, False)
    """
    gangs = list(running)
    if not gangs:
        return True
    for name in following.total_resources:
        asked = sum(gang.total_resources.get(name, 0.0) for gang in [*gangs, following])
        if asked > total.get(name, 0.0) - (spare_cpus if name == "CPU" else 0.0) + 1e-9:
            return False
    return True


def require_room(total: Resources, spare_cpus: float, max_concurrent: int | None, gang: ScalingConfig) -> None:
    """Check that the cluster can hold ``max_concurrent`` trials at once.

    Raises:
        CapacityError: it cannot. The message has what was asked for and what the cluster has.
    """
    if max_concurrent is None:
        return
    for name, amount in gang.total_resources.items():
        spare = spare_cpus if name == "CPU" and max_concurrent > 1 else 0.0
        usable = total.get(name, 0.0) - spare
        if max_concurrent * amount > usable + 1e-9:
            reading = f", {spare:g} of them reserved for reading data" if spare else ""
            raise CapacityError(
                f"max_concurrent_trials is {max_concurrent}, and each trial takes {amount:g} {name}: "
                f"{max_concurrent * amount:g} {name} at once. The cluster has {total.get(name, 0.0):g}{reading}. Lower it to "
                f"{int(usable // amount)}, or leave it out to run as many as fit"
            )
