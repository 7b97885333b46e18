"""The trainer for Hugging Face's Transformers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib._ray_objects import described
from trainlib._rooms import taken_from_ray
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError
from trainlib.huggingface._config import TransformersConfig
from trainlib.huggingface._loop import EVALUATION, TRAIN
from trainlib.huggingface._room import ROOM
from trainlib.torch._config import TorchConfig
from trainlib.torch._trainer import TorchTrainer
from trainlib.trainer import DataParallelTrainer, InspectedTrainer

if TYPE_CHECKING:
    import transformers
    from ray.data.preprocessor import Preprocessor

__all__ = ["TransformersTrainer", "as_config", "takes"]


class TransformersTrainer(TorchTrainer):
    """Builds a ``transformers.Trainer`` in many processes, which train one model together.

    Each worker has its own Trainer, on its share of the rows, and all average their gradients. What the Trainers log becomes
    reports, under the Trainer's own names, and what they save becomes checkpoints. A retry goes on with the newest one: its
    weights, its optimizer, its learning rate, its random numbers and its step.

    Example:
        >>> from trainlib import ScalingConfig
        >>> from trainlib.huggingface import TransformersTrainer
        >>> def trainer_init_per_worker(train_dataset, eval_dataset=None, **config):
        ...     import transformers
        ...
        ...     model = transformers.AutoModelForCausalLM.from_pretrained("gpt2")
        ...     args = transformers.TrainingArguments("out", num_train_epochs=config["epochs"], save_strategy="epoch")
        ...     return transformers.Trainer(model=model, args=args, train_dataset=train_dataset)
        >>> trainer = TransformersTrainer(
        ...     trainer_init_per_worker,
        ...     trainer_init_config={"epochs": 1},
        ...     scaling_config=ScalingConfig(num_workers=2),
        ...     datasets={"train": "tokens.parquet"},
        ... )
        >>> trainer.fit().metrics["train_loss"]  # doctest: +SKIP
        3.1
    """

    room = ROOM

    def __init__(
        self,
        trainer_init_per_worker: Callable[..., transformers.Trainer],
        *,
        trainer_init_config: dict[str, Any] | None = None,
        torch_config: TorchConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            trainer_init_per_worker: builds the ``transformers.Trainer`` of a worker. It is called with the worker's share of
                ``datasets["train"]``, with ``datasets["evaluation"]``, and with ``trainer_init_config`` as keywords. Both are
                datasets of torch whose rows are dicts; None where the trainer has none, so that the function may load its own,
                which is dealt out to the workers.
            trainer_init_config: what the function is called with by keywords.
            torch_config: how the process group is set up.
            datasets: ``train``, and ``evaluation`` if it is to be evaluated. Their columns are the arguments of the model, or
                those of the data collator: tokenize before, e.g. with a ``preprocessor``.
            resume_from_checkpoint: where to go on: a checkpoint of a Trainer, or one of a model, whose weights are the first ones.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        _require_init(trainer_init_per_worker)
        if trainer_init_config is not None and not isinstance(trainer_init_config, dict):
            raise InvalidArgumentError(f"trainer_init_config is {described(trainer_init_config)}: pass a dict")
        # What is missing, a sweep may add.
        _require_fitting(trainer_init_per_worker, trainer_init_config, inspect.Signature.bind_partial)
        _require_names(datasets)
        given = {**locals(), "torch_config": as_config(TransformersConfig, torch_config)}
        DataParallelTrainer.__init__(self, **ROOM.base_arguments(given))
        saving = self.run_config.checkpoint_config
        if saving.checkpoint_frequency or saving.checkpoint_at_end is not None:
            raise ValueError(
                "CheckpointConfig says when to save, but a transformers.Trainer does that itself: set save_strategy and save_steps in "
                "its TrainingArguments, and leave checkpoint_frequency and checkpoint_at_end out"
            )

    @property
    def subject(self) -> Any:
        return (self.train_loop_config or {})["trainer_init_per_worker"]

    def inspect(self) -> InspectedTrainer:
        """Also that the function can be called with ``trainer_init_config``."""
        own = self.train_loop_config or {}
        _require_fitting(self.subject, own.get("trainer_init_config"), inspect.Signature.bind)
        return super().inspect()


def as_config(kind: type[Any], config: Any) -> Any:
    """A TorchConfig, trainlib's or Ray's, as settings of another kind. Anything else is given back as it is."""
    config = taken_from_ray(config)
    return kind.over(config) if type(config) is TorchConfig else config


def _require_init(function: Any) -> None:
    if not callable(function):
        raise InvalidArgumentError(
            f"trainer_init_per_worker is {described(function)}: pass a function that builds a transformers.Trainer"
        )
    try:
        inspect.signature(function).bind_partial(None, None)
    except TypeError as error:
        raise InvalidArgumentError(
            f"trainer_init_per_worker {getattr(function, '__name__', '')}{inspect.signature(function)} cannot be called: it is "
            "called with the train_dataset, the eval_dataset and, by keywords, trainer_init_config"
        ) from error


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function that builds a Trainer takes an argument by keyword, besides both datasets.

    Example:
        >>> takes(lambda train_dataset, eval_dataset, **config: None, "target"), takes(lambda train, target: None, "target")
        (True, False)
    """
    try:
        inspect.signature(function).bind_partial(None, None, **{argument: None})
    except TypeError:
        return False
    return True


def _require_fitting(function: Any, config: dict[str, Any] | None, bind: Callable[..., Any]) -> None:
    """Raise an InvalidArgumentError if a function cannot be called with a config. ``bind`` says whether all has to be there."""
    signature = inspect.signature(function)
    try:
        bind(signature, None, None, **(config or {}))
    except TypeError as error:
        raise InvalidArgumentError(
            f"trainer_init_config does not fit {getattr(function, '__name__', 'trainer_init_per_worker')}{signature}: {error}. Change one "
            "of them: the function is called with both datasets and, by keywords, trainer_init_config"
        ) from error


def _require_names(datasets: Any) -> None:
    if not isinstance(datasets, dict) or not datasets:
        return
    if TRAIN not in datasets:
        raise ValueError(f"datasets has no {TRAIN!r}, only {', '.join(map(repr, datasets))}: add the rows to train on")
    if unknown := [name for name in datasets if name not in (TRAIN, EVALUATION)]:
        raise ValueError(
            f"datasets has {', '.join(map(repr, unknown))}, which would be ignored. A TransformersTrainer takes {TRAIN!r} and "
            f"{EVALUATION!r}"
        )
