"""What Accelerate is to be told, from a file or a dict, and whether this can be done here."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from trainlib._ray_objects import described, kind_of
from trainlib.config import ScalingConfig
from trainlib.errors import InvalidArgumentError

__all__ = ["TOPOLOGY", "require_known", "require_usable", "settings_in"]

TOPOLOGY = (
    "compute_environment",
    "gpu_ids",
    "machine_rank",
    "main_process_ip",
    "main_process_port",
    "main_training_function",
    "mpirun_config",
    "num_machines",
    "num_processes",
    "rdzv_backend",
    "same_network",
    "use_cpu",
)
"""What follows from the workers, whatever a file says."""

_USUAL = frozenset(
    {
        *TOPOLOGY,
        "debug",
        "deepspeed_config",
        "distributed_type",
        "downcast_bf16",
        "dynamo_backend",
        "dynamo_config",
        "enable_cpu_affinity",
        "fp16",
        "fp8_config",
        "fsdp_config",
        "mixed_precision",
    }
)
"""What every version of Accelerate knows. Only about other settings it has to be asked, and imported, which takes seconds."""

_IMPOSSIBLE = {
    "XLA": "TPUs",
    "TPU": "TPUs",
    "MEGATRON_LM": "Megatron-LM, which starts its own processes",
}


def settings_in(given: Any) -> dict[str, Any]:
    """The settings in a file that ``accelerate config`` has written, or in a dict like it.

    Raises:
        InvalidArgumentError: it is neither.
        ValueError: the file does not exist, or has something else in it.
    """
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, (str, os.PathLike)):
        raise InvalidArgumentError(
            f"accelerate_config is {described(given)}: pass a dict, or the path of a file that `accelerate config` has written"
        )
    file = Path(given).expanduser()
    if not file.is_file():
        raise ValueError(
            f"accelerate_config is {str(given)!r}: there is no such file. `accelerate config --config_file {given}` writes it"
        )
    try:
        found = json.loads(file.read_text()) if file.suffix == ".json" else yaml.safe_load(file.read_text())
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"accelerate_config {file} can be read neither as YAML nor as JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"accelerate_config {file} contains {kind_of(found)}. Expected a mapping of settings")
    return found


def require_known(config: Mapping[str, Any]) -> None:
    """Raise a ValueError if Accelerate does not know a setting."""
    asked_about = [name for name in config if name not in _USUAL]
    if not asked_about:
        return
    from accelerate.commands.config.config_args import ClusterConfig

    known = {*_USUAL, *ClusterConfig.__dataclass_fields__}
    for name in asked_about:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"accelerate_config has {name!r}, which Accelerate does not know.{meant} `accelerate config` writes a file with what it knows"
            )


def require_usable(config: Mapping[str, Any], scaling: ScalingConfig) -> None:
    """Check that the workers can train in the way that the settings ask for.

    Raises:
        ImportError: a package is missing.
        ValueError: they cannot. Accelerate itself would not always say so.
    """
    kind = str(config.get("distributed_type", "NO")).upper()
    if config.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        raise ValueError(
            f"accelerate_config has compute_environment: {config['compute_environment']}. The workers are those of Ray: leave it out"
        )
    if kind in _IMPOSSIBLE:
        raise ValueError(
            f"accelerate_config has distributed_type: {kind}. trainlib cannot train with {_IMPOSSIBLE[kind]}"
        )
    if kind == "DEEPSPEED":
        _require_deepspeed(scaling)
    if kind == "FSDP" and not scaling.use_gpu and _fsdp_version(config) != "2":
        raise ValueError(
            "accelerate_config has distributed_type: FSDP, but the workers have no GPUs. On CPUs, only the second version of FSDP "
            "works: add fsdp_config: {fsdp_version: 2}, or use ScalingConfig(use_gpu=True)"
        )
    if kind.startswith("MULTI_") and kind != "MULTI_CPU" and not scaling.use_gpu:
        raise ValueError(
            f"accelerate_config has distributed_type: {kind}, but the workers have no GPUs. Use ScalingConfig(use_gpu=True), or "
            "leave distributed_type out"
        )


def _fsdp_version(config: Mapping[str, Any]) -> str:
    given = config.get("fsdp_config")
    sharding = given if isinstance(given, Mapping) else {}
    return str(sharding.get("fsdp_version", sharding.get("version")))


def _require_deepspeed(scaling: ScalingConfig) -> None:
    if find_spec("deepspeed") is None:
        raise ImportError(
            "accelerate_config has distributed_type: DEEPSPEED, which needs the package deepspeed on every node, and a CUDA "
            "toolkit to build its kernels: pip install deepspeed. FSDP needs neither"
        )
    if not scaling.use_gpu:
        raise ValueError(
            "accelerate_config has distributed_type: DEEPSPEED, which needs workers with GPUs: ScalingConfig(use_gpu=True)"
        )
