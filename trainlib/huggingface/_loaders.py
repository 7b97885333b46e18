"""Data loaders of a ``transformers.Trainer`` for rows that are already each worker's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.data.iterator import _IterableFromIterator
from torch.utils.data import DataLoader, IterableDataset

from trainlib.huggingface._callbacks import ShareBestModel
from trainlib.huggingface._saved_files import is_of_one_rank
from trainlib.huggingface._shard_rows import ShardRows

__all__ = ["prepare_trainer"]


def prepare_trainer(trainer: Any) -> Any:
    """Let a ``transformers.Trainer`` read a worker's shard of a dataset. Returns the same Trainer.

    A Trainer would deal out the rows of any dataset to all ranks, so that each would train on a part of its part. What
    ``session.get_dataset_shard("train").iter_torch_batches(...)`` gives is taken as it is, batch by batch; the Trainer needs
    ``max_steps`` then, because such a dataset has no length. Other datasets are dealt out as usual. What the Trainer would
    write into MLflow by itself is left out: it would be a second run. With ``load_best_model_at_end``, all ranks have the best
    model at the end; if it is sharded, ``output_dir`` has to be a folder that all ranks share.

    Raises:
        ValueError: FSDP is asked for, but Accelerate would not shard the model; or a model is sharded,
            ``load_best_model_at_end`` is set, and the ranks do not save it in one folder.

    Example:
        >>> import transformers
        >>> from trainlib import session
        >>> from trainlib.huggingface.transformers import prepare_trainer
        >>> def train_func():
        ...     rows = session.get_dataset_shard("train").iter_torch_batches(batch_size=8)
        ...     trainer = prepare_trainer(transformers.Trainer(model=model, args=args, train_dataset=rows))
        ...     trainer.train()
    """
    _require_sharding(trainer)
    base = type(trainer)

    class ShardTrainer(base):  # type: ignore[misc, valid-type]
        """The user's Trainer, with loaders for shards."""

        def get_train_dataloader(self) -> Any:
            with _loading(self, self.train_dataset) as own:
                return super().get_train_dataloader() if own is None else own

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            with _loading(self, _chosen(self.eval_dataset, eval_dataset)) as own:
                return super().get_eval_dataloader(eval_dataset) if own is None else own

        def get_test_dataloader(self, test_dataset: Any) -> Any:
            with _loading(self, test_dataset) as own:
                return super().get_test_dataloader(test_dataset) if own is None else own

    ShardTrainer.__name__, ShardTrainer.__qualname__ = base.__name__, base.__qualname__
    trainer.__class__ = ShardTrainer
    _leave_out_mlflow(trainer)
    if not _is_sharded(trainer):
        # Before the user's callbacks, which may evaluate the model.
        trainer.callback_handler.callbacks.insert(0, ShareBestModel())
    return trainer


def _require_sharding(trainer: Any) -> None:
    """Raise a ValueError if a Trainer is to shard its model in a way that it could not, or not to the end."""
    args = trainer.args
    if args.world_size == 1:
        return
    is_asked_for = bool(args.fsdp) or os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
    if is_asked_for and not trainer.is_fsdp_enabled:
        raise ValueError(
            "the transformers.Trainer asks for FSDP, but Accelerate would keep the whole model in every worker, because they have no "
            "GPUs. On CPUs, use an AccelerateTrainer with accelerate_config={'distributed_type': 'FSDP', 'fsdp_config': "
            "{'fsdp_version': 2}} and leave fsdp out of the TrainingArguments; or use ScalingConfig(use_gpu=True)"
        )
    if args.load_best_model_at_end and _is_sharded(trainer) and is_of_one_rank(args.output_dir):
        metric = args.metric_for_best_model
        named = metric if metric.startswith("eval_") else f"eval_{metric}"
        order = "max" if args.greater_is_better else "min"
        raise ValueError(
            f"load_best_model_at_end=True, with {'FSDP' if trainer.is_fsdp_enabled else 'DeepSpeed'}, needs one output_dir for all "
            f"workers, but {args.output_dir!r} is in the working directory that each worker has for itself: each would save its part of the "
            "model there, and none could load the whole. Pass an absolute path that all workers share. Or leave it out, and keep the best "
            f"checkpoint: RunConfig(checkpoint_config=CheckpointConfig(checkpoint_score_attribute={named!r}, "
            f"checkpoint_score_order={order!r}))"
        )


def _is_sharded(trainer: Any) -> bool:
    return bool(trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled)


def _chosen(datasets: Any, asked_for: Any) -> Any:
    """The dataset to evaluate: that which is asked for, by its name or itself."""
    if isinstance(asked_for, str):
        return datasets[asked_for]
    return asked_for if asked_for is not None else datasets


@contextmanager
def _loading(trainer: Any, dataset: Any) -> Iterator[Any]:
    """While a Trainer makes a loader for a dataset. Gives the loader, if the dataset has batches already."""
    if isinstance(dataset, _IterableFromIterator):
        yield DataLoader(_Batches(dataset), batch_size=1, collate_fn=_only)
        return
    if not isinstance(dataset, ShardRows):
        yield None
        return
    args, accelerator = trainer.args, trainer.accelerator
    before = args.dataloader_num_workers, args.dataloader_persistent_workers, args.dataloader_prefetch_factor
    # Only this process can read its shard.
    args.dataloader_num_workers, args.dataloader_persistent_workers, args.dataloader_prefetch_factor = 0, False, None
    if dataset.is_own:
        accelerator.prepare = _as_it_is
    try:
        yield None
    finally:
        args.dataloader_num_workers, args.dataloader_persistent_workers, args.dataloader_prefetch_factor = before
        if dataset.is_own:
            del accelerator.prepare


def _as_it_is(loader: Any) -> Any:
    """Instead of Accelerate's ``prepare``, which deals out the rows. The Trainer moves them to the device by itself."""
    return loader


class _Batches(IterableDataset):  # type: ignore[type-arg]
    """Batches of Ray Data, as a dataset of torch."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)


def _only(batches: list[Any]) -> Any:
    return batches[0]


def _leave_out_mlflow(trainer: Any) -> None:
    from transformers.integrations.integration_utils import MLflowCallback

    trainer.remove_callback(MLflowCallback)
