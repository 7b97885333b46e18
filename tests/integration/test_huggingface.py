"""Hugging Face's Transformers and Accelerate on real workers. Models and tokenizers are made here: none is downloaded."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.without_trainlib import predictions_without_trainlib
from trainlib import (
    Checkpoint,
    CheckpointConfig,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    session,
    tune,
)
from trainlib._prediction.model_names import find_model
from trainlib._registry.models import promote_checkpoint
from trainlib._registry.store import current_store
from trainlib.flows import predict
from trainlib.huggingface import AccelerateTrainer, TransformersCheckpoint, TransformersTrainer, _served
from trainlib.torch import TorchTrainer
from trainlib.tune import TuneConfig, Tuner

VOCABULARY, LENGTH, ROWS, EVALUATED = 32, 6, 32, 13
TWO = ScalingConfig(num_workers=2)


def tokens(rows: int) -> pd.DataFrame:
    """Rows of tokens. Each is followed by the one after it, so that there is something to learn."""
    ids = [[(row + place) % VOCABULARY for place in range(LENGTH)] for row in range(rows)]
    return pd.DataFrame({"input_ids": ids, "labels": ids, "row": range(rows)})


def small_model(dropout: float = 0.0) -> Any:
    import transformers

    transformers.set_seed(7)
    sizes = {"vocab_size": VOCABULARY, "n_positions": LENGTH, "n_embd": 16, "n_layer": 1, "n_head": 2}
    rates = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **rates, **ends))


def small_tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({f"w{index}": index for index in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0", pad_token="w0")


def arguments(**more: Any) -> Any:
    import transformers

    quiet = {"report_to": "none", "disable_tqdm": True}
    return transformers.TrainingArguments(**{"output_dir": "out", "optim": "sgd", "seed": 7, **quiet, **more})


def weights_of(model: Any) -> list[float]:
    return [number for each in model.state_dict().values() for number in each.flatten().tolist()]


# -- gradients are averaged ---------------------------------------------------------------------------------

EPOCHS, RATE = 4, 0.5


def fit_on_all_rows(train_dataset, eval_dataset, batch_size, folder=None, loads_best=False):
    """A Trainer whose batches are all rows that there are, so that their order does not matter."""
    import transformers

    class WriteWeights(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, model=None, **more):
            self.last = weights_of(model)

        def on_train_end(self, args, state, control, model=None, **more):
            if folder is not None:
                seen = sorted(row["row"] for row in train_dataset)
                found = {"weights": self.last, "best": weights_of(model), "rows": seen}
                Path(folder, f"{session.get_world_rank()}.json").write_text(json.dumps(found))

    return transformers.Trainer(
        model=small_model(),
        args=arguments(
            num_train_epochs=EPOCHS,
            learning_rate=RATE,
            per_device_train_batch_size=batch_size,
            per_device_eval_batch_size=4,
            logging_strategy="epoch",
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=loads_best,
            metric_for_best_model="rows",  # the first epoch stays the best
        ),
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
        processing_class=small_tokenizer(),
        compute_metrics=lambda predicted: {"rows": len(predicted.label_ids)},
        callbacks=[WriteWeights()],
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training of two workers, and the weights of both."""
    folder = tmp_path_factory.mktemp("weights")
    result = TransformersTrainer(
        fit_on_all_rows,
        trainer_init_config={"batch_size": ROWS // 2, "folder": str(folder), "loads_best": True},
        scaling_config=TWO,
        datasets={"train": tokens(ROWS), "evaluation": tokens(EVALUATED)},
        run_config=RunConfig(
            checkpoint_config=CheckpointConfig(
                num_to_keep=1, checkpoint_score_attribute="eval_loss", checkpoint_score_order="min"
            )
        ),
    ).fit()
    return result, [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def test_two_workers_train_as_one_process_with_the_full_batch_does(trained, curve, tmp_path):
    result, (first, second) = trained
    assert sorted(first["rows"] + second["rows"]) == list(range(ROWS)), "each row is one worker's"
    assert len(first["rows"]) == len(second["rows"])
    assert first["weights"] == second["weights"], "bitwise, since both have applied the same averaged gradients"
    assert first["best"] == second["best"] != first["weights"], "both have loaded the best, which rank 0 has saved"

    rows = tokens(ROWS).drop(columns="row").to_dict("records")
    alone = fit_on_all_rows(rows, rows[:EVALUATED], ROWS)
    alone.args.output_dir = str(tmp_path)
    alone.train()
    np.testing.assert_allclose(first["weights"], weights_of(alone.model), rtol=1e-4, atol=1e-5)
    logged = [each["loss"] for each in alone.state.log_history if "loss" in each]
    np.testing.assert_allclose([loss for _, loss in curve(result.run_id, "loss")], logged, rtol=1e-4)
    # The last batch of a rank is filled up with rows that were evaluated before, which count in its loss, but in no metric.
    assert result.metrics["eval_loss"] == pytest.approx(alone.state.log_history[-2]["eval_loss"], rel=5e-3)
    assert result.metrics["eval_rows"] == EVALUATED, "each once, although it is no multiple of the batches"


def test_what_a_trainer_logs_and_saves_is_reported_and_kept(trained, curve):
    result, (first, _) = trained
    assert [step for step, _ in curve(result.run_id, "eval_loss")] == list(range(1, EPOCHS + 1)), "one report an epoch"
    assert result.metrics["epoch"] == EPOCHS
    assert {"loss", "learning_rate", "train_loss", "train_runtime", "step"} <= result.metrics.keys()

    checkpoint = result.checkpoint
    assert type(checkpoint) is TransformersCheckpoint
    assert weights_of(checkpoint.get_model()) == first["weights"]
    assert checkpoint.get_tokenizer()("w3 w4")["input_ids"] == [3, 4]
    assert checkpoint.get_training_arguments().num_train_epochs == EPOCHS
    left = list(Path(result.log_dir).rglob("checkpoint-*"))
    assert not left, "what is in the registry is not kept a second time"


def test_its_checkpoint_predicts_for_rows_of_any_length(trained, tmp_path):
    result, _ = trained
    rows = tokens(3).assign(input_ids=[[1, 2, 3], [1, 2], [5]])
    rows.to_parquet(tmp_path / "rows.parquet")
    written = predict(result.run_id, str(tmp_path / "rows.parquet"), num_workers=1, storage_path=str(tmp_path))
    predicted = pd.read_parquet([str(each) for each in Path(written.folder).glob("*.parquet")])
    logits = [np.stack(row) for row in predicted["prediction"]]
    assert [each.shape for each in logits] == [(3, VOCABULARY), (2, VOCABULARY), (1, VOCABULARY)]
    np.testing.assert_allclose(logits[1], logits[0][:2], atol=1e-5)


def test_its_registered_model_predicts_where_there_is_only_mlflow_and_transformers(trained):
    result, _ = trained
    promote_checkpoint(find_model(result.run_id).model_id, "next word")
    uri, texts = "models:/next word@best", pd.DataFrame({"text": ["w1 w2", "w3 w4 w5"]})
    store = {"MLFLOW_TRACKING_URI": current_store().uri, "HF_HUB_OFFLINE": "1"}
    elsewhere, (imported,) = predictions_without_trainlib({uri: texts}, **store)
    assert "transformers" in imported
    assert elsewhere[uri] == _served.load(result.checkpoint.path)(texts).to_numpy().tolist()
    assert all(text.strip() for (text,) in elsewhere[uri])


# -- a sweep -------------------------------------------------------------------------------------------------


def fit_at_rate(train_dataset, eval_dataset, learning_rate):
    import transformers

    steps = {"max_steps": 2, "logging_steps": 1, "save_strategy": "no", "eval_strategy": "epoch"}
    return transformers.Trainer(
        model=small_model(),
        args=arguments(learning_rate=learning_rate, **steps),
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
    )


def test_a_sweep_tries_arguments_of_the_function_and_finds_the_best(registry):
    """By a metric that the first report does not have: that is what the first step has logged."""
    results = Tuner(
        TransformersTrainer(
            fit_at_rate,
            datasets={"train": tokens(ROWS), "evaluation": tokens(EVALUATED)},
            scaling_config=ScalingConfig(resources_per_worker={"CPU": 0.5}),
        ),
        param_space={"trainer_init_config": {"learning_rate": tune.grid_search([1e-6, RATE])}},
        tune_config=TuneConfig(metric="eval_loss", mode="min"),
        run_config=RunConfig(verbose=0),
    ).fit()
    assert not results.errors
    best = results.get_best_result()
    assert best.config["trainer_init_config"] == {"learning_rate": RATE}
    runs = [registry.get_run(result.run_id) for result in results]
    assert len({run.data.tags["mlflow.parentRunId"] for run in runs}) == 1
    assert min(run.data.metrics["eval_loss"] for run in runs) == best.metrics["eval_loss"]


# -- a worker dies ------------------------------------------------------------------------------------------

STEPS = 8


def train_and_die(train_dataset, eval_dataset, deaths, is_streamed):
    import transformers

    class Die(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            if state.global_step == 6 and session.get_world_rank() == 1 and session.get_context().attempt <= deaths:
                while not Path(session.get_trial_dir(), "checkpoints", "checkpoint_000001").exists():
                    time.sleep(0.05)  # until rank 0's checkpoint of the fourth step is kept
                os.kill(os.getpid(), signal.SIGKILL)

    rows = tokens(ROWS).drop(columns="row").to_dict("records")
    return transformers.Trainer(
        model=small_model(dropout=0.2),
        args=arguments(
            max_steps=STEPS,
            optim="adamw_torch",
            learning_rate=0.01,
            per_device_train_batch_size=3,
            logging_steps=1,
            save_strategy="steps",
            save_steps=2,
        ),
        train_dataset=train_dataset if is_streamed else rows,
        callbacks=[Die()],
    )


@pytest.mark.parametrize("is_streamed", [True, False], ids=["its shard", "rows of its own"])
def test_a_training_whose_worker_is_killed_goes_on_as_if_nothing_had_happened(registry, curve, is_streamed):
    trainers = [
        TransformersTrainer(
            train_and_die,
            trainer_init_config={"deaths": deaths, "is_streamed": is_streamed},
            scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
            datasets={"train": tokens(ROWS)} if is_streamed else None,
            run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
        )
        for deaths in (0, 1)
    ]
    with ThreadPoolExecutor(2) as threads:
        whole, resumed = threads.map(lambda trainer: trainer.fit(), trainers)

    assert (whole.attempts, resumed.attempts) == (1, 2)
    tags = registry.get_run(resumed.run_id).data.tags
    assert json.loads(tags["trainlib.attempt.001"]).items() >= {"outcome": "worker", "rank": 1}.items()
    assert '"resumed_from": "checkpoint_000001"' in tags["trainlib.attempt.002"], "that of the fourth step"
    assert curve(resumed.run_id, "loss") == curve(whole.run_id, "loss")
    assert [step for step, _ in curve(whole.run_id, "loss")] == list(range(1, STEPS + 1))
    assert curve(resumed.run_id, "learning_rate") == curve(whole.run_id, "learning_rate")


# -- a training function that uses a Trainer -----------------------------------------------------------------


def train_func(config: dict[str, Any]) -> None:
    import transformers

    from trainlib.huggingface.transformers import RayTrainReportCallback, prepare_trainer

    class Die(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            if state.global_step == 3 and config["dies"]:
                die_once("checkpoint_000000")

    rows = session.get_dataset_shard("train").iter_torch_batches(batch_size=4)
    trainer = transformers.Trainer(
        model=small_model(),
        args=arguments(
            max_steps=config["steps"],
            learning_rate=RATE,
            max_grad_norm=0,
            save_strategy="steps",
            save_steps=2,
            logging_steps=1,
        ),
        train_dataset=rows,
        callbacks=[Die()],
    )
    trainer.add_callback(RayTrainReportCallback())
    trainer = prepare_trainer(trainer)
    checkpoint = session.get_checkpoint()
    if checkpoint is None:
        trainer.train()
    else:
        with checkpoint.as_directory() as folder:
            trainer.train(resume_from_checkpoint=os.path.join(folder, RayTrainReportCallback.CHECKPOINT_NAME))
    assert trainer.args.world_size == 2
    Path(config["folder"], f"{session.get_world_rank()}.json").write_text(json.dumps(weights_of(trainer.model)))


def die_once(kept: str) -> None:
    """Rank 1 is killed in the first attempt, once this checkpoint of rank 0's is kept."""
    if session.get_world_rank() == 1 and session.get_context().attempt == 1:
        while not Path(session.get_trial_dir(), "checkpoints", kept).exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)


def losses_of_one_process(steps: int) -> tuple[list[float], list[float]]:
    """What a model loses and weighs that is trained in the same way on the rows of both workers."""
    import torch

    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / steps)
        ids = tokens(ROWS)["input_ids"]
        batch = torch.tensor([ids[first + 4 * step + row] for first in (0, ROWS // 2) for row in range(4)])
        optimizer.zero_grad()
        # A Trainer divides by the number of labels, also by the first ones, which nobody predicts.
        loss = model(input_ids=batch, labels=batch).loss * (LENGTH - 1) / LENGTH
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, weights_of(model)


def test_a_training_function_reports_what_its_trainer_saves_and_resumes(tmp_path, curve):
    """After a worker is killed, and from the checkpoint of another training."""
    frame = tokens(ROWS).assign(
        input_ids=lambda rows: rows["input_ids"].map(np.array), labels=lambda rows: rows["labels"].map(np.array)
    )
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"steps": 4, "folder": str(tmp_path), "dies": True},
        scaling_config=TWO,
        datasets={"train": frame.drop(columns="row")},
        run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
    )
    result = trainer.fit()
    assert result.attempts == 2
    assert [value for _, value in curve(result.run_id, "step")] == [2, 4]
    assert type(result.checkpoint) is TransformersCheckpoint
    assert sorted(os.listdir(result.checkpoint.path)) == ["checkpoint"]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first == second == weights_of(result.checkpoint.get_model())
    losses, weights = losses_of_one_process(4)
    np.testing.assert_allclose([loss for _, loss in curve(result.run_id, "loss")], losses[1::2], rtol=1e-4)
    np.testing.assert_allclose(first, weights, rtol=1e-4, atol=1e-5)

    config = {"steps": 6, "folder": str(tmp_path), "dies": False}
    again = trainer.copy_with(train_loop_config=config, resume_from_checkpoint=result.checkpoint).fit()
    assert [value for _, value in curve(again.run_id, "step")] == [6]


# -- Accelerate ----------------------------------------------------------------------------------------------


def fit_with_accelerate(config: dict[str, Any]) -> None:
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator()
    torch.manual_seed(accelerator.process_index)  # the ranks start with different weights
    network = torch.nn.Linear(2, 1)
    checkpoint = session.get_checkpoint()
    done = checkpoint.to_dict() if checkpoint is not None else {"steps": 0, "weights": network.state_dict()}
    network.load_state_dict(done["weights"])
    model, optimizer = accelerator.prepare(network, torch.optim.SGD(network.parameters(), lr=0.1))
    for step in range(done["steps"] + 1, 4):
        if step == 3 and config["dies"]:
            die_once("checkpoint_000001")
        optimizer.zero_grad()
        accelerator.backward(model(told_features(accelerator.process_index)).pow(2).mean())
        optimizer.step()
        weights = accelerator.gather(network.weight.detach().flatten()).reshape(2, -1)
        metrics = {
            "processes": accelerator.num_processes,
            "are_equal": int(torch.equal(weights[0], weights[1])),
            "precision": accelerator.mixed_precision,
            "step": step,
        }
        saved = {"steps": step, "weights": network.state_dict()}
        session.report(metrics, checkpoint=Checkpoint.from_dict(saved))


def told_features(rank: int) -> Any:
    import torch

    return torch.full((4, 2), float(rank + 1))


def test_accelerate_is_told_what_a_file_says_except_who_trains(tmp_path, curve):
    """Also after a worker is lost: the training goes on where it was."""
    import torch

    file = tmp_path / "accelerate.yaml"
    file.write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_CPU\nmixed_precision: bf16\nnum_machines: 3\n"
        "num_processes: 12\nmachine_rank: 2\nmain_process_ip: 192.0.2.1\nmain_process_port: 1\nuse_cpu: false\n"
    )
    expected = {"processes": 2, "are_equal": 1, "precision": "bf16"}
    result = AccelerateTrainer(
        fit_with_accelerate,
        train_loop_config={"dies": True},
        accelerate_config=file,
        scaling_config=TWO,
        run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
    ).fit()
    assert result.metrics.items() >= expected.items()
    assert result.attempts == 2
    assert curve(result.run_id, "step") == [(1, 1), (2, 2), (3, 3)]
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for rank in (0, 1):
            with torch.autocast("cpu", torch.bfloat16):
                loss = network(told_features(rank)).float().pow(2).mean()
            (loss / 2).backward()
        optimizer.step()
    trained = result.checkpoint.to_dict()["weights"]["weight"]
    np.testing.assert_allclose(trained, network.weight.detach(), rtol=1e-3)
    config = {"dies": False}
    plain = AccelerateTrainer(fit_with_accelerate, train_loop_config=config, scaling_config=TWO).fit()
    assert plain.metrics.items() >= {**expected, "precision": "no"}.items(), "the file of another training is forgotten"


def fit_sharded(config: dict[str, Any]) -> None:
    import torch
    from accelerate import Accelerator
    from torch.distributed.tensor import DTensor

    accelerator = Accelerator()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 4))
    model, optimizer = accelerator.prepare(network, torch.optim.AdamW(network.parameters(), lr=0.1))
    own = [parameter.to_local().numel() for parameter in model.parameters() if isinstance(parameter, DTensor)]
    for _ in range(3):
        optimizer.zero_grad()
        accelerator.backward(model(sharded_features(accelerator.process_index)).pow(2).mean())
        optimizer.step()
    whole = accelerator.get_state_dict(model)
    session.report({"own": own, "weights": whole["0.weight"].flatten().tolist() if whole else []})


def sharded_features(rank: int) -> Any:
    import torch

    return torch.arange(8.0).reshape(4, 2) + rank


def test_a_model_is_sharded_on_cpus_and_learns_what_it_would_in_one_process():
    import torch

    sharded = {"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2, "fsdp_auto_wrap_policy": "NO_WRAP"}}
    result = AccelerateTrainer(fit_sharded, accelerate_config=sharded, scaling_config=TWO).fit()
    assert result.metrics["own"] == [4, 2], "half of the weights, and half of the biases"
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 4))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        network(torch.cat([sharded_features(rank) for rank in (0, 1)])).pow(2).mean().backward()
        optimizer.step()
    np.testing.assert_allclose(result.metrics["weights"], network[0].weight.detach().flatten(), rtol=1e-4)


# -- bad input that only a worker can find -------------------------------------------------------------------


def returns_nothing(train_dataset, eval_dataset):
    return None


def has_rows(train_dataset, eval_dataset):
    raise AssertionError("it is called only if each worker has rows")


def has_no_data(train_dataset, eval_dataset):
    import transformers

    return transformers.Trainer(model=small_model(), args=arguments())


def filtered() -> Any:
    """A dataset whose rows are known only once it is read."""
    import ray

    return ray.data.from_pandas(tokens(ROWS)).filter(lambda row: row["row"] == 0)


@pytest.mark.parametrize(
    ("make", "datasets", "message"),
    [
        (returns_nothing, None, "returns_nothing returned a NoneType: it has to return the transformers.Trainer"),
        (has_no_data, None, "that has_no_data returned has no train_dataset"),
        (has_rows, {"train": filtered}, "the dataset 'train' has no rows for one of the workers.*use fewer workers"),
    ],
)
def test_a_function_that_builds_no_trainer_or_has_no_rows_for_it_is_named(make, datasets, message):
    with pytest.raises(TrainingFailedError, match=message):
        TransformersTrainer(make, scaling_config=TWO, datasets=datasets).fit()
