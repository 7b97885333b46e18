"""Peak memory while 2 workers stream 4 GiB, minus that of a training that reads nothing."""

import threading

import psutil

from bench.scripts.rows import large
from bench.scripts.side import finish
from trainlib import DataParallelTrainer, ScalingConfig, session


class Peak:
    """The peak memory in use while the block runs."""

    def __enter__(self):
        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(0.02):
            memory = psutil.virtual_memory()
            self.bytes = max(self.bytes, memory.total - memory.available)


def train_func(config):
    rows = 0
    if config["read"]:
        for batch in session.get_dataset_shard("train").iter_batches(batch_size=16):
            rows += len(batch["data"])
    session.report({"rows": rows})


def peak(read):
    """The peak of a training that reads everything, or nothing."""
    trainer = DataParallelTrainer(
        train_func,
        train_loop_config={"read": read},
        scaling_config=ScalingConfig(num_workers=2),
        datasets={"train": large},
    )
    with Peak() as found:
        rows = trainer.fit().metrics["rows"]
    return found.bytes, rows


empty, _ = peak(read=False)
streaming, rows = peak(read=True)
assert rows == 1024, rows
finish(gigabytes=(streaming - empty) / 1e9)
