"""The values of Accelerate's settings that are one of a few, and the settings of FSDP: checked before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from trainlib._ray_objects import described
from trainlib.errors import InvalidArgumentError

__all__ = ["require_known_values", "without_yaml_booleans"]

# What every version of Accelerate knows. Only about other values it has to be asked, and imported, which takes seconds.
_TYPES = ("NO", "MULTI_CPU", "MULTI_GPU", "MULTI_NPU", "MULTI_MLU", "MULTI_MUSA", "MULTI_XPU", "FSDP", "DEEPSPEED")
_PRECISIONS = ("no", "fp16", "bf16", "fp8")
_BACKENDS = ("NO", "EAGER", "AOT_EAGER", "INDUCTOR", "CUDAGRAPHS", "TENSORRT")
_OF_FSDP = {
    "auto_wrap_policy": ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"),
    "backward_prefetch": ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"),
    "sharding_strategy": (
        *("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"),
        *("1", "2", "3", "4", "5"),
    ),
    "state_dict_type": ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"),
    "version": ("1", "2"),
}
_FSDP_SETTINGS = (
    *_OF_FSDP,
    "activation_checkpointing",
    "cpu_ram_efficient_loading",
    "forward_prefetch",
    "ignored_modules",
    "min_num_params",
    "offload_params",
    "reshard_after_forward",
    "sync_module_states",
    "transformer_layer_cls_to_wrap",
    "use_orig_params",
)


def without_yaml_booleans(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with "no" where YAML has made False of a no without quotation marks.

    Example:
        >>> without_yaml_booleans({"distributed_type": False, "mixed_precision": False, "debug": False})
        {'distributed_type': 'NO', 'mixed_precision': 'no', 'debug': False}
    """
    meant = {"distributed_type": "NO", "dynamo_backend": "NO", "mixed_precision": "no"}
    read = {name: meant[name] if name in meant and value is False else value for name, value in config.items()}
    compiled = read.get("dynamo_config")
    if isinstance(compiled, Mapping):
        backends = {name: "NO" for name in ("backend", "dynamo_backend") if compiled.get(name) is False}
        read["dynamo_config"] = {**compiled, **backends}
    return read


def require_known_values(config: Mapping[str, Any]) -> None:
    """Check the values that are one of a few, and the names and values in ``fsdp_config``.

    Raises:
        InvalidArgumentError: ``fsdp_config`` is no mapping.
        ValueError: Accelerate does not know a setting or a value.
    """
    _require("distributed_type", config.get("distributed_type"), str, _TYPES, _types)
    _require("mixed_precision", config.get("mixed_precision"), str.lower, _PRECISIONS, _precisions)
    _require("dynamo_backend", config.get("dynamo_backend"), str.upper, _BACKENDS, _backends)
    compiled = config.get("dynamo_config")
    if isinstance(compiled, Mapping):
        for name in ("backend", "dynamo_backend"):
            _require(f"dynamo_config: {name}", compiled.get(name), str.upper, _BACKENDS, _backends)
    sharding = config.get("fsdp_config")
    if sharding is None:
        return
    if not isinstance(sharding, Mapping):
        raise InvalidArgumentError(
            f"accelerate_config has fsdp_config: {described(sharding)}. Expected a mapping of settings"
        )
    for name, value in sharding.items():
        # Accelerate reads both "fsdp_version" and "version".
        short = str(name).removeprefix("fsdp_")
        if short not in _FSDP_SETTINGS:
            _require("fsdp_config", f"fsdp_{short}", str, (), _fsdp_settings)
        if short in _OF_FSDP:
            _require(f"fsdp_config: {name}", value, str.upper, _OF_FSDP[short])


def _require(
    setting: str,
    value: Any,
    spelled: Callable[[str], str],
    usual: Collection[str],
    all_known: Callable[[], Collection[str]] | None = None,
) -> None:
    """Raise a ValueError if a value is none of those known.

    Args:
        setting: Its name.
        value: Its value. None: it is not set.
        spelled: How Accelerate spells it, before it looks.
        usual: What it always knows.
        all_known: Returns all that it knows here.
    """
    if value is None or spelled(str(value)) in usual:
        return
    known = usual if all_known is None else all_known()
    if spelled(str(value)) in known:
        return
    close = [*difflib.get_close_matches(str(value), known), *difflib.get_close_matches(str(value).upper(), known)]
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"accelerate_config has {setting}: {value}, which Accelerate does not know.{meant} It knows {', '.join(known)}"
    )


def _types() -> list[str]:
    from accelerate.utils import DistributedType

    return [each.value for each in DistributedType]


def _precisions() -> list[str]:
    from accelerate.utils import PrecisionType

    return [str(each) for each in PrecisionType.list()]


def _backends() -> list[str]:
    from accelerate.utils import DynamoBackend

    return [each.value for each in DynamoBackend]


def _fsdp_settings() -> list[str]:
    from accelerate.commands.launch import launch_command_parser

    asked = vars(launch_command_parser().parse_args(["script.py"]))
    return sorted({*(name for name in asked if name.startswith("fsdp_")), *(f"fsdp_{name}" for name in _FSDP_SETTINGS)})
