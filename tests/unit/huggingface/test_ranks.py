"""Several ranks that train one model with a ``transformers.Trainer``: on CPUs, sharded or whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import transformers
from accelerate import PartialState

from tests.unit.huggingface.ranks import in_ranks
from trainlib.huggingface import _state
from trainlib.huggingface._launch import tell_accelerate
from trainlib.huggingface._loaders import prepare_trainer

SHARDED = {"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2, "fsdp_auto_wrap_policy": "NO_WRAP"}}
IDS = [[(row + place) % 8 for place in range(4)] for row in range(8)]
ROWS = [{"input_ids": ids, "labels": ids} for ids in IDS]


class Scored(transformers.Trainer):
    """Its model is best in its first epoch."""

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        found = {"eval_score": -self.state.epoch}
        self.log(found)
        return found


def small_model() -> Any:
    transformers.set_seed(7)
    sizes = {"vocab_size": 8, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 1}
    rates = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **rates, bos_token_id=0, eos_token_id=0))


def trainer_of(model: Any, batch: int = 4, **more: Any) -> transformers.Trainer:
    quiet = {"report_to": "none", "disable_tqdm": True, "optim": "sgd", "learning_rate": 0.5, "max_grad_norm": 0}
    args = transformers.TrainingArguments(
        **{
            "output_dir": "out",
            "num_train_epochs": 3,
            "save_strategy": "no",
            "per_device_train_batch_size": batch,
            **quiet,
            **more,
        }
    )
    return Scored(model=model, args=args, train_dataset=ROWS, eval_dataset=ROWS)


BEST = {"load_best_model_at_end": True, "eval_strategy": "epoch", "save_strategy": "epoch"} | {
    "metric_for_best_model": "score",
    "greater_is_better": True,
}


def sharded_training(folder: str) -> tuple[bool, list[int], dict[str, Any], bool]:
    before = _state.snapshot()
    original = PartialState.__init__
    tell_accelerate(SHARDED)
    trainer = prepare_trainer(trainer_of(small_model(), output_dir=folder, **BEST))
    trainer.train()
    own = [parameter.to_local().numel() for parameter in trainer.model.parameters()]
    weights = {name: each.full_tensor().tolist() for name, each in trainer.model.named_parameters()}
    dist.barrier()
    dist.destroy_process_group()
    problem = _state.restore(before)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # for the one who ends it
    return trainer.is_fsdp_enabled, own, weights, problem is None and PartialState.__init__ is original


def test_a_trainer_shards_its_model_on_cpus_and_learns_what_it_would_in_one_process(tmp_path):
    """A transformers.Trainer lets Accelerate look at its process anew. The best model is loaded from a folder that all ranks share."""
    first, second = in_ranks(sharded_training, str(tmp_path / "shared"))
    assert first[0]
    assert second[0]
    whole = [parameter.numel() for parameter in small_model().parameters()]
    assert [sum(each) for each in zip(first[1], second[1], strict=True)] == whole, "each rank has a part"
    assert first[2] == second[2]
    assert first[3], "the next training in this process has whole models"
    alone = trainer_of(small_model(), batch=8, use_cpu=True, output_dir=str(tmp_path / "alone"), **BEST)
    alone.train()
    for name, weights in alone.model.named_parameters():
        torch.testing.assert_close(torch.tensor(first[2][name]), weights.detach(), rtol=1e-4, atol=1e-5)


def refused(told: dict[str, Any], more: dict[str, Any]) -> str:
    tell_accelerate(told)
    with pytest.raises(ValueError, match=" ") as error:
        prepare_trainer(trainer_of(small_model(), **more))
    return str(error.value)


def test_a_sharded_model_with_load_best_model_at_end_is_refused_before_it_is_trained():
    """Each rank has an output_dir of its own, so that none has all that has to be loaded."""
    for error in in_ranks(refused, SHARDED, BEST):
        assert "load_best_model_at_end=True, with FSDP, needs one output_dir for all workers, but 'out' is in" in error
        assert "checkpoint_score_attribute='eval_score'" in error


def test_sharding_that_accelerate_does_not_do_here_is_an_error():
    """TrainingArguments ask for it, and nobody has told Accelerate that these CPUs can do it."""
    for error in in_ranks(refused, {}, {"fsdp": True}):
        assert "asks for FSDP, but Accelerate would keep the whole model in every worker" in error


class WithExtraState(transformers.GPT2LMHeadModel):
    """Some modules have a state that is no tensor."""

    def get_extra_state(self) -> dict[str, int]:
        return {"version": 1}

    def set_extra_state(self, state: Any) -> None: ...


def best_of_both() -> tuple[list[float], list[float]]:
    tell_accelerate({})
    model = WithExtraState(small_model().config)
    model.register_buffer("seen", torch.tensor([float(dist.get_rank())]))
    trainer = prepare_trainer(trainer_of(model, **BEST, save_total_limit=1))
    # What a Trainer saves has to be tensors only.
    trainer._save = lambda output_dir, state_dict=None: torch.save(
        {name: each for name, each in model.state_dict().items() if isinstance(each, torch.Tensor)},
        Path(_made(output_dir), "pytorch_model.bin"),
    )
    trainer.train()
    return [number for each in model.parameters() for number in each.flatten().tolist()], model.seen.tolist()


def _made(folder: str) -> str:
    os.makedirs(folder, exist_ok=True)
    return folder


def test_all_ranks_have_the_best_model_also_if_a_part_of_its_state_is_no_tensor():
    first, second = in_ranks(best_of_both)
    assert first == second
