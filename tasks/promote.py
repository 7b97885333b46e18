"""The tasks that move an alias of a registered model: to a version that has won, or back."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from trainlib._registry.aliases import AliasMove
from trainlib._registry.models import roll_back_alias, take_alias

__all__ = ["promote", "roll_back"]


@task(name="promote", task_run_name="promote · {name} {version}", cache_policy=NO_CACHE)
def promote(name: str, alias: str, version: str, holder: str | None) -> bool:
    """Point an alias to a version, if it still points to the version that it was compared with.

    Args:
        name: The registered model's name.
        alias: The alias.
        version: The version that takes it.
        holder: The version that it was compared with. None if there was none.

    Returns:
        Whether it was moved.
    """
    return take_alias(name, alias, version, holder)


@task(name="roll_back", task_run_name="roll back · {name}", cache_policy=NO_CACHE)
def roll_back(name: str, alias: str = "best") -> AliasMove:
    """Point an alias back to the version that had it before.

    Args:
        name: The registered model's name.
        alias: The alias.
    """
    return roll_back_alias(name, alias)
