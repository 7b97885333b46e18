"""What a ``transformers.Trainer`` saves is reported, and removed once it was and the Trainer does not look at it again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import transformers

from trainlib import TrainContext, session
from trainlib._execution.working_directory import ORIGINAL
from trainlib.huggingface._callbacks import ReportEachStep

IDS = [[(row + place) % 8 for place in range(4)] for row in range(8)]
ROWS = [{"input_ids": ids, "labels": ids} for ids in IDS]


class Recorded(SimpleNamespace):
    """The session of a training with one worker. It copies checkpoints, as workers do."""

    def __init__(self, kept: Path) -> None:
        super().__init__(context=TrainContext(), kept=kept, reports=[])

    def report(self, metrics: dict[str, Any], checkpoint: Any = None, when_stopped: Any = None) -> None:
        self.reports.append(metrics)
        if checkpoint is not None:
            checkpoint.to_directory(self.kept / f"epoch-{metrics['epoch']:.0f}")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    (tmp_path / "rank_0").mkdir()
    monkeypatch.chdir(tmp_path / "rank_0")
    monkeypatch.delenv(ORIGINAL, raising=False)
    running = Recorded(tmp_path / "kept")
    session.enter(running)
    yield running
    session.enter(None)


def trainer(*, best: int, epochs: int = 4, output_dir: str = "out", **more: Any) -> transformers.Trainer:
    """One whose model is best in one of its epochs."""
    sizes = {"vocab_size": 8, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 1}
    ends = {"bos_token_id": 0, "eos_token_id": 0}

    class Scored(transformers.Trainer):
        def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            found = {"eval_score": -abs(self.state.epoch - best)}
            self.log(found)
            return found

    made = Scored(
        model=transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends)),
        args=transformers.TrainingArguments(
            output_dir=output_dir,
            num_train_epochs=epochs,
            per_device_train_batch_size=8,
            learning_rate=0.1,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
            eval_strategy="epoch",
            save_strategy="epoch",
            logging_strategy="epoch",
            metric_for_best_model="score",
            greater_is_better=True,
            **more,
        ),
        train_dataset=ROWS,
        eval_dataset=ROWS,
    )
    made.add_callback(ReportEachStep())
    return made


@pytest.mark.parametrize("loads_best", [False, True])
@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize("best", [1, 2, 4])
def test_a_training_whose_best_epoch_is_any_ends_and_leaves_no_folder(recorded, best, limit, loads_best):
    training = trainer(best=best, save_total_limit=limit, load_best_model_at_end=loads_best)
    training.train()
    assert [metrics["eval_score"] for metrics in recorded.reports] == [-abs(epoch - best) for epoch in (1, 2, 3, 4)]
    assert "train_loss" in recorded.reports[-1]
    assert sorted(path.name for path in recorded.kept.iterdir()) == [f"epoch-{epoch}" for epoch in (1, 2, 3, 4)]
    assert not list(Path("out").iterdir()), "what is in the registry is not kept a second time"
    final = transformers.GPT2LMHeadModel.from_pretrained(recorded.kept / f"epoch-{best if loads_best else 4}")
    for name, weights in final.state_dict().items():
        assert weights.equal(training.model.state_dict()[name]), name


def test_a_retry_removes_what_was_left_to_it_and_goes_on_where_nothing_was(recorded):
    """The best model's folder is there, if the worker has the same disk. Otherwise, the Trainer warns of that."""
    for is_there in (True, False):
        trainer(best=1, epochs=2, save_total_limit=1, output_dir="before").train()
        begun = recorded.kept / "epoch-2"
        state = json.loads((begun / "trainer_state.json").read_text())
        assert state["best_model_checkpoint"] == "before/checkpoint-1"
        (begun / "trainer_state.json").write_text(json.dumps({**state, "best_model_checkpoint": "out/checkpoint-1"}))
        if is_there:
            shutil.copytree(recorded.kept / "epoch-1", "out/checkpoint-1")
        resumed = trainer(best=1, save_total_limit=1)
        resumed.train(resume_from_checkpoint=str(begun))
        assert (resumed.state.best_model_checkpoint == "out/checkpoint-1") is is_there
        assert recorded.reports[-1]["epoch"] == 4
        assert "train_loss" in recorded.reports[-1]
        assert not list(Path("out").iterdir())
        shutil.rmtree(recorded.kept)


def test_only_a_rank_s_own_folder_is_cleared(recorded, tmp_path, monkeypatch):
    """Ranks that share theirs would remove what others report, and what the user's script has saved there before."""
    for output_dir, script in ((str(tmp_path / "elsewhere"), tmp_path), ("shared", Path.cwd())):
        monkeypatch.setenv(ORIGINAL, str(script))
        (Path(output_dir) / "checkpoint-9").mkdir(parents=True)
        trainer(best=1, epochs=2, output_dir=output_dir).train()
        assert sorted(path.name for path in Path(output_dir).iterdir()) == [f"checkpoint-{step}" for step in (1, 2, 9)]
