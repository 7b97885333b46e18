"""The environment that an algorithm learns in, checked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from trainlib._ray_objects import described
from trainlib.errors import InvalidArgumentError
from trainlib.rl._algorithms import algorithm_class, learns_from_env

__all__ = ["is_registered", "require_env"]


def require_env(algorithm: Any, config: dict[str, Any], datasets: dict[str, Any] | None) -> None:
    """Check that an algorithm has an environment if it needs one, and that there is one of that name.

    Only names are looked up: a class or a function makes its environment itself, and what stands before a colon, as in
    ``"ale_py:ALE/Pong-v5"``, is imported by the env runners. It may be installed only there, or come with a ``runtime_env``.

    Args:
        algorithm: The algorithm.
        config: Its settings.
        datasets: The trainer's datasets.

    Raises:
        InvalidArgumentError: it is neither a name nor something that makes one.
        ValueError: it lacks one, or nobody has registered it.
    """
    found = algorithm_class(algorithm)
    env = config.get("env", found.get_default_config().env)
    if not env and learns_from_env(algorithm, config, datasets):
        raise ValueError(
            f"{found.__name__} learns from an environment. None was given. Pass one: config={{'env': 'CartPole-v1'}}, or a class or "
            "function that makes it"
        )
    if env and not isinstance(env, str) and not callable(env):
        raise InvalidArgumentError(f"config: env is {described(env)}. Pass a name, a class or a function that makes it")
    if not isinstance(env, str) or not env or ":" in env:
        return
    import gymnasium
    from ray.tune.registry import ENV_CREATOR, _global_registry

    if _global_registry.contains(ENV_CREATOR, env) or is_registered(env, gymnasium.registry):
        return
    # Ray's registry cannot be listed, once Ray runs, but knows what this process has registered.
    own = [name for kind, name in (*_global_registry._registered, *_global_registry._to_flush) if kind == ENV_CREATOR]
    close = difflib.get_close_matches(env, [*own, *gymnasium.registry], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if "." in env:
        hint += " RLlib imports no class by its path: pass the class itself."
    raise ValueError(
        f"config: there is no environment {env!r}.{hint} Register your own with ray.tune.register_env before you make the trainer, or "
        f"name the module that registers it with gymnasium: 'my_module:{env}'"
    )


def is_registered(env: str, known: Iterable[str]) -> bool:
    """Whether gymnasium knows an environment. Without a version, it takes the newest.

    Example:
        >>> known = ["CartPole-v0", "CartPole-v1"]
        >>> is_registered("CartPole-v1", known), is_registered("CartPole", known), is_registered("CartPole-v11", known)
        (True, True, False)
    """
    return any(env in (each, each.rpartition("-v")[0]) for each in known)
