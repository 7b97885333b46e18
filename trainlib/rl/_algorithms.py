"""RLlib's algorithms by name, and their settings, checked."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import cache
from typing import Any

from trainlib._ray_objects import described
from trainlib.config import ScalingConfig
from trainlib.errors import InvalidArgumentError

__all__ = ["algorithm_class", "algorithm_config", "checked", "learns_from_env", "require_steps"]

_RUNNERS = ("num_env_runners", "num_workers", "num_rollout_workers")
"""What RLlib has called the number of env runners."""
_SAMPLED = "sampler"
"""What RLlib has in place of a path if an algorithm learns from its environment."""
_API_STACK = ("enable_rl_module_and_learner", "enable_env_runner_and_connector_v2")
"""The switches of RLlib's new API stack."""
_GROUPS = frozenset({"callbacks", "framework", "input", "lambda", "model", "multiagent", "policies"})
"""Keys of RLlib's dicts that are no attributes of its settings."""


def checked(algorithm: Any, config: Any) -> tuple[Any, dict[str, Any]]:
    """An algorithm and its settings, as they are kept: the name of one of RLlib's own, and a dict of what differs from its defaults.

    Args:
        algorithm: A name, or a subclass of RLlib's ``Algorithm``. None for that of an ``AlgorithmConfig``.
        config: A dict, an ``AlgorithmConfig`` or None.

    Raises:
        InvalidArgumentError: one of them is something else.
        ValueError: there is no such algorithm, it has no such setting, or it would run with TensorFlow or on RLlib's old API stack.
    """
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    if isinstance(config, AlgorithmConfig):
        algorithm = algorithm if algorithm is not None else config.algo_class
    elif config is not None and not isinstance(config, dict):
        raise InvalidArgumentError(
            f"config is {described(config)}: pass a dict, or an AlgorithmConfig such as PPOConfig()"
        )
    found = algorithm_class(algorithm)
    known = found.get_default_config()
    if isinstance(config, AlgorithmConfig):
        if not isinstance(config, type(known)):
            raise InvalidArgumentError(
                f"config is a {type(config).__name__}, but the algorithm {found.__name__} has a {type(known).__name__}"
            )
        _require_torch(config.framework_str)
        _require_new_api_stack({name: getattr(config, name) for name in _API_STACK}, known, found.__name__)
        config = _differences(config, known)
    else:
        for name in ("framework", "framework_str"):
            _require_torch((config or {}).get(name))
        _require_known(config or {}, known, found.__name__)
        _require_new_api_stack(config or {}, known, found.__name__)
    is_rllibs = _registered(found.__name__) is found
    return (found.__name__ if is_rllibs else found), dict(config or {})


def algorithm_class(algorithm: Any) -> Any:
    """The class of an algorithm.

    Raises:
        InvalidArgumentError: it is neither a name nor a class of RLlib's.
        ValueError: there is none of that name.
    """
    from ray.rllib.algorithms.algorithm import Algorithm

    if isinstance(algorithm, type) and issubclass(algorithm, Algorithm):
        return algorithm
    if not isinstance(algorithm, str):
        raise InvalidArgumentError(
            f"algorithm is {described(algorithm)}: pass the name of one of RLlib's, e.g. 'PPO', or a subclass of its Algorithm"
        )
    known = _names()
    if algorithm not in known:
        by_lower_case = {name.lower(): name for name in known}
        close = difflib.get_close_matches(algorithm.lower(), by_lower_case, n=1)
        hint = f" Did you mean {by_lower_case[close[0]]!r}?" if close else ""
        raise ValueError(f"RLlib has no algorithm {algorithm!r}. It has {', '.join(sorted(known))}.{hint}")
    return _registered(algorithm)


def require_steps(algorithm: Any, config: dict[str, Any], datasets: dict[str, Any] | None) -> None:
    """Check that an algorithm has recorded steps to learn from if it needs them, and none if it would not read them.

    Args:
        algorithm: The algorithm.
        config: Its settings.
        datasets: The trainer's datasets.

    Raises:
        ValueError: it lacks them, would ignore them, or has them twice.
    """
    found = algorithm_class(algorithm)
    name = found.__name__
    named = _input(config)
    if datasets and named != _SAMPLED:
        raise ValueError(
            f"datasets has 'train', and config names recorded steps, too: input_ is {named!r:.80}. Pass one of them"
        )
    if not datasets and named == _SAMPLED and _reads_steps(found):
        raise ValueError(
            f"{name} learns from recorded steps. No datasets were given. Pass datasets={{'train': ...}}, or where they are: "
            "config={'input_': ['s3://bucket/steps']}"
        )
    if datasets and found.training_step.__module__.startswith("ray.") and not _reads_steps(found):
        raise ValueError(
            f"{name} learns from its environment, and would ignore datasets. Leave datasets out, or use an algorithm that learns "
            "from recorded steps: BC, CQL, IQL or MARWIL"
        )


def learns_from_env(algorithm: Any, config: dict[str, Any], datasets: dict[str, Any] | None) -> bool:
    """Whether an algorithm of RLlib's makes its steps in an environment of its own, and so needs one.

    Whoever writes an algorithm, or what runs its environments, knows what these need.
    """
    found = algorithm_class(algorithm)
    is_users = not found.training_step.__module__.startswith("ray.") or config.get("env_runner_cls") is not None
    named = _input(config)
    return not (is_users or datasets or named != _SAMPLED or _reads_steps(found))


def _input(config: dict[str, Any]) -> Any:
    """Where an algorithm's steps come from, under either of RLlib's names."""
    return config.get("input_", config.get("input", _SAMPLED))


def _reads_steps(found: Any) -> bool:
    """Whether an algorithm of RLlib's learns from recorded steps."""
    from ray.rllib.algorithms.cql import CQL

    # CQL counts as online, like SAC, from which it is derived. It reads recorded steps all the same.
    return issubclass(found, CQL) or not found.get_default_config().is_online


def algorithm_config(algorithm: Any, config: dict[str, Any], scaling: ScalingConfig, offline: str | None = None) -> Any:
    """The settings of an algorithm as an ``AlgorithmConfig``, with the env runners that ``scaling`` asks for.

    Args:
        algorithm: The algorithm.
        config: Its settings.
        scaling: The env runners.
        offline: Where the recorded steps are that it learns from, if it does.

    Raises:
        ValueError: both say how many env runners there are, and differ. Or RLlib does not take the settings.
    """
    found = algorithm_class(algorithm)
    for name in _RUNNERS:
        if config.get(name, scaling.num_workers) != scaling.num_workers:
            raise ValueError(
                f"config[{name!r}] is {config[name]}, but scaling_config has {scaling.num_workers} worker(s), which are the env "
                "runners. Leave it out of config, and set ScalingConfig(num_workers=...)"
            )
    made = found.get_default_config()
    made.algo_class = found
    made.update_from_dict({name: value for name, value in config.items() if name not in _RUNNERS})
    if callable(made.env) and not isinstance(made.env, type):
        made.environment(_as_class(made.env))
    made.env_runners(num_env_runners=scaling.num_workers, **_resources(scaling, config))
    if offline is not None:
        # Reading reserves nothing: all CPUs may be the gang's, and Ray Data would wait for one for ever.
        made.offline_data(
            input_=[offline],
            input_read_method_kwargs={"num_cpus": 0, **made.input_read_method_kwargs},
            map_batches_kwargs={"concurrency": 1, "num_cpus": 0, **made.map_batches_kwargs},
        )
        if made.env is None:
            made.env_runners(num_env_runners=0)
    if scaling.use_gpu and "num_gpus_per_learner" not in config:
        made.learners(num_gpus_per_learner=1)
    return made


def _as_class(function: Callable[[Any], Any]) -> type:
    """A class whose instances are the environments that a function makes: RLlib refuses functions."""
    name = getattr(function, "__name__", "Environment")
    return type(name, (), {"__new__": lambda cls, context: function(context)})


def _resources(scaling: ScalingConfig, config: dict[str, Any]) -> dict[str, Any]:
    """What each env runner gets. Its GPUs only if they are named: ``use_gpu`` is for the learners."""
    given = dict(scaling.resources_per_worker or {})
    amounts = {"num_cpus_per_env_runner": given.pop("CPU", None), "num_gpus_per_env_runner": given.pop("GPU", None)}
    asked = {name: amount for name, amount in amounts.items() if amount is not None and name not in config}
    return {**asked, **({"custom_resources_per_env_runner": given} if given else {})}


def _names() -> list[str]:
    from ray.rllib.algorithms.registry import ALGORITHMS

    return list(ALGORITHMS)


@cache
def _registered(name: str) -> Any:
    """RLlib's own algorithm of a name, imported when it is asked for. None if there is none."""
    from ray.rllib.algorithms.registry import ALGORITHMS

    return ALGORITHMS[name]()[0] if name in ALGORITHMS else None


def _require_known(config: dict[str, Any], known: Any, algorithm: str) -> None:
    kind = type(known)
    properties = {name for name in dir(kind) if isinstance(getattr(kind, name, None), property)}
    names = {*vars(known), *known.to_dict(), *properties, *_GROUPS, *_RUNNERS}
    # RLlib itself would set a setting that it does not know, and ignore it.
    for name in config:
        if name not in names:
            close = difflib.get_close_matches(str(name), [each for each in names if not each.startswith("_")], n=3)
            hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise ValueError(f"config has {name!r}, but {algorithm} has no such setting.{hint}")


def _require_torch(framework: Any) -> None:
    if framework not in (None, "torch"):
        raise ValueError(
            f"config has framework={framework!r}, but trainlib trains on RLlib's new API stack, whose models are PyTorch's. Leave framework out, and "
            "describe your own models with PyTorch, by rl_module_spec"
        )


def _require_new_api_stack(config: dict[str, Any], known: Any, algorithm: str) -> None:
    switches = [name for name in _API_STACK if name in config]
    if off := [name for name in switches if not config[name]]:
        raise ValueError(
            f"config has {off[0]}={config[off[0]]}, but trainlib trains on RLlib's new API stack: its checkpoints hold an RLModule, which "
            f"the old one does not have. Leave {' and '.join(_API_STACK)} out, and describe your own models by rl_module_spec"
        )
    if not switches and not all(getattr(known, name) for name in _API_STACK):
        raise ValueError(
            f"{algorithm} runs on RLlib's old API stack by default, but trainlib trains on the new one. If {algorithm} can do that, pass "
            f"config={{{', '.join(f'{name!r}: True' for name in _API_STACK)}}}"
        )


def _differences(config: Any, known: Any) -> dict[str, Any]:
    """What a user has set of an ``AlgorithmConfig``.

    Raises:
        InvalidArgumentError: a setting does not survive that.
    """
    given, default = config.to_dict(), known.to_dict()
    changed = {name: value for name, value in given.items() if name not in default or not _same(value, default[name])}
    again = known.copy(copy_frozen=False).update_from_dict(changed).to_dict()
    if lost := sorted(name for name in given if not _same(given[name], again.get(name))):
        raise InvalidArgumentError(
            f"config: {', '.join(lost)} cannot be taken from the {type(config).__name__}. Pass config as a dict"
        )
    return changed


def _same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError:  # arrays
        return False
