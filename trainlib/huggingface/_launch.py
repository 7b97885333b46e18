"""What ``accelerate launch`` would set in a process before it starts a script, set in a worker."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from trainlib.errors import InvalidArgumentError
from trainlib.huggingface._accelerate_file import TOPOLOGY

__all__ = ["tell_accelerate"]

# The launcher sets these from its own idea of processes, machines and cores.
_OURS = ("CUDA_VISIBLE_DEVICES", "KMP_AFFINITY", "KMP_BLOCKTIME", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")


def tell_accelerate(config: dict[str, Any]) -> None:
    """Set in this process what ``Accelerator()`` reads.

    Raises:
        InvalidArgumentError: Accelerate does not know a setting, or its value.
    """
    import torch

    told = _environment(config) if config else {}
    os.environ.update({name: value for name, value in told.items() if name not in _OURS})
    if not torch.cuda.is_available():
        os.environ["ACCELERATE_USE_CPU"] = "true"
        if told.get("ACCELERATE_USE_FSDP") == "true":
            _shard_on_cpus()


def _shard_on_cpus() -> None:
    """Let Accelerate shard models in processes without GPUs. torch can do that, but Accelerate does not ask it to.

    It would keep the model whole in every process instead, without a word. What it looks at is what kind of processes they are.
    It forgets that as soon as somebody builds ``TrainingArguments``, and looks anew: hence not once, but whenever it looks.
    ``_state.restore`` undoes it.
    """
    from accelerate import PartialState
    from accelerate.utils import DistributedType

    look: Any = PartialState.__init__

    @functools.wraps(look)
    def look_for_shards(self: Any, *args: Any, **kwargs: Any) -> None:
        look(self, *args, **kwargs)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = look_for_shards  # type: ignore[method-assign]
    PartialState(cpu=True)


def _environment(config: dict[str, Any]) -> dict[str, str]:
    """The variables that ``accelerate launch`` would set, besides those that are there already."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import (
        prepare_deepspeed_cmd_env,
        prepare_multi_gpu_env,
        prepare_simple_launcher_cmd_env,
    )

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.yaml")
        file.write_text(yaml.safe_dump(_without_topology(config)))
        arguments = launch_command_parser().parse_args(["--config_file", str(file), "script.py"])
        try:
            arguments, settings, has_precision = _validate_launch_command(arguments)
            if arguments.use_deepspeed:
                named = [*settings.deepspeed_config, *(["mixed_precision"] if has_precision else [])]
                arguments.deepspeed_fields_from_accelerate_config = ",".join(named)
                _, told = prepare_deepspeed_cmd_env(arguments)
            elif arguments.use_fsdp:
                told = prepare_multi_gpu_env(arguments)
            else:
                _, told = prepare_simple_launcher_cmd_env(arguments)
        except (AttributeError, TypeError, ValueError) as error:
            text = str(error).replace(f"The config file at {file}", "It")
            raise InvalidArgumentError(f"Accelerate cannot use accelerate_config: {text}") from error
    return {name: value for name, value in told.items() if os.environ.get(name) != value}


def _without_topology(config: dict[str, Any]) -> dict[str, Any]:
    """The settings as those of one process: its place among the others is known already."""
    own = {name: value for name, value in config.items() if name not in TOPOLOGY}
    # A free port: the launcher looks whether it could listen there, but it is not used.
    return {"distributed_type": "NO", **own, "num_processes": 1, "num_machines": 1, "main_process_port": 0}
