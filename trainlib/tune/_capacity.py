"""How many trials at once. Pure: what the cluster has is handed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainlib.config import ScalingConfig
from trainlib.errors import CapacityError

__all__ = ["has_room", "require_room"]

Resources = Mapping[str, float]


def has_room(total: Resources, spare_cpus: float, running: Iterable[ScalingConfig], following: ScalingConfig) -> bool:
    """Whether a gang has room beside those that run. One alone always has: if it never fits, it says so itself.

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
    """Refuse a number of trials at once that the cluster cannot hold.

    Raises:
        CapacityError: says what was asked for and what there is.
    """
    if max_concurrent is None:
        return
    for name, amount in gang.total_resources.items():
        spare = spare_cpus if name == "CPU" and max_concurrent > 1 else 0.0
        usable = total.get(name, 0.0) - spare
        if max_concurrent * amount > usable + 1e-9:
            beside = f", {spare:g} of which have to read data" if spare else ""
            raise CapacityError(
                f"max_concurrent_trials is {max_concurrent}, and a trial takes {amount:g} {name}, which is "
                f"{max_concurrent * amount:g} {name} at once; the cluster has {total.get(name, 0.0):g}{beside}: lower it to "
                f"{int(usable // amount)}, or leave it out to have as many as fit"
            )
