"""The same small transformers.Trainer, for training under trainlib and under torchrun."""

from __future__ import annotations

from typing import Any

from bench.scripts.network import Stopwatch

BATCH, LENGTH, VOCABULARY, ROWS = 16, 64, 512, 4096
# Many times as long as what is not timed.
STEPS = 500


def rows() -> list[dict[str, list[int]]]:
    """Tokens, each followed by the one after it."""
    ids = [[(row * 7 + place) % VOCABULARY for place in range(LENGTH)] for row in range(ROWS)]
    return [{"input_ids": each, "labels": each} for each in ids]


def make_trainer(train_dataset: Any, eval_dataset: Any = None, **config: Any) -> Any:
    """A Trainer on some rows, which logs every 50 steps and saves nothing."""
    import transformers

    transformers.set_seed(0)
    sizes = {"vocab_size": VOCABULARY, "n_positions": LENGTH, "n_embd": 128, "n_layer": 2, "n_head": 4}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    args = transformers.TrainingArguments(
        "out",
        max_steps=config.get("steps", STEPS),
        per_device_train_batch_size=BATCH,
        logging_steps=50,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )

    class Timed(transformers.TrainerCallback):
        def __init__(self) -> None:
            self._watch = Stopwatch(args.world_size, BATCH)

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            self._watch.step()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
            if state.global_step == state.max_steps and "loss" in logs:
                logs["samples_per_s"] = self._watch.samples_per_s()
                state.log_history[-1]["samples_per_s"] = logs["samples_per_s"]

    return transformers.Trainer(model=model, args=args, train_dataset=train_dataset, callbacks=[Timed()])
