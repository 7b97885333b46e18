"""The measurements: which two scripts, which of their numbers, and the target."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Side:
    """A script that runs in a fresh process, and its name in the table."""

    name: str
    script: str
    environment: dict[str, str] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()
    """Arguments of Python that start the script. Default: as a module."""


@dataclass(frozen=True)
class Measurement:
    """A number from two sides, and the target for the ratio of trainlib's to the other's."""

    name: str
    what: str
    key: str
    unit: str
    trainlib: Side
    other: Side
    target: float
    more_is_better: bool = False
    as_difference: bool = False
    """Whether the target is for the difference of the two numbers, and not for their ratio."""

    def compared(self, trainlib: float, other: float) -> float:
        """The ratio or the difference that the target is for."""
        return abs(trainlib - other) if self.as_difference else trainlib / other

    def holds(self, compared: float) -> bool:
        """Whether a ratio or a difference meets the target."""
        return compared >= self.target if self.more_is_better else compared <= self.target


# "local": start a new Ray, even if a cluster runs on this machine.
_V1 = {"RAY_TRAIN_V2_ENABLED": "0", "RAY_ADDRESS": "local"}
# Two workers, one core each.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
_TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
_HOROVODRUN = ("-m", "horovod.runner.launch", "-np", "2", "--gloo", sys.executable, "-m")
_KERAS_2 = {"TF_USE_LEGACY_KERAS": "1"}


def _trainlib(script: str, environment: dict[str, str] | None = None) -> Side:
    return Side("trainlib", f"{script}_trainlib", environment or {})


def _ray(script: str) -> Side:
    return Side("Ray Train V1", f"{script}_ray", _V1)


def _throughput(framework: str, how: str, other: Side) -> Measurement:
    """The same training function, under trainlib and started the framework's own way."""
    return Measurement(
        f"throughput-{framework}",
        f"{framework}: {how} on 2 workers, samples per second",
        "samples_per_s",
        "/s",
        _trainlib(f"throughput_{framework}", _ONE_THREAD),
        other,
        target=0.97,
        more_is_better=True,
    )


def _trees(library: str) -> tuple[Measurement, Measurement]:
    """The same rows, rounds and parameters: on 2 workers, and in one process of the library alone."""
    name = library.lower()
    sides = _trainlib(f"trees_{name}"), Side("one process, 2 threads", f"trees_{name}_bare")
    what = f"{library} on 1 million rows x 30 columns, 2 workers"
    return (
        Measurement(f"trees-{name}", what, "train_s", "s", *sides, target=1.15),
        Measurement(
            f"trees-{name}-auc",
            "its AUC on held-out rows",
            "auc",
            " %",
            *sides,
            target=0.2,
            as_difference=True,
        ),
    )


START = _trainlib("start"), _ray("start")
IMPORT = _trainlib("import"), _ray("import")
WHOLE = _trainlib("whole_script"), _ray("whole_script")
ASHA = _trainlib("tune_asha"), Side("FIFO", "tune_asha_fifo")

MEASUREMENTS = (
    _throughput("torch", "DDP", Side("torchrun", "throughput_torch_torchrun", _ONE_THREAD, _TORCHRUN)),
    _throughput(
        "tensorflow",
        "MultiWorkerMirroredStrategy",
        Side("two processes", "throughput_tensorflow_processes", {**_ONE_THREAD, **_KERAS_2}),
    ),
    _throughput("horovod", "Horovod", Side("horovodrun", "throughput_horovod_horovodrun", _ONE_THREAD, _HOROVODRUN)),
    _throughput(
        "transformers",
        "a transformers.Trainer",
        Side("torchrun", "throughput_transformers_torchrun", _ONE_THREAD, _TORCHRUN),
    ),
    *_trees("XGBoost"),
    *_trees("LightGBM"),
    _throughput(
        "lightning", "its Trainer, DDP", Side("torchrun", "throughput_lightning_torchrun", _ONE_THREAD, _TORCHRUN)
    ),
    Measurement("first-start", "fit() to the first line, fresh process", "first_s", "s", *START, target=1.0),
    Measurement("second-start", "the same, second fit()", "second_s", "s", *START, target=0.3),
    Measurement(
        "edit-run",
        "python train.py to the first line, second time in a row, platform up",
        "second_run_s",
        "s",
        _trainlib("edit_run"),
        Side("Ray Train V1", "edit_run_ray", {"RAY_TRAIN_V2_ENABLED": "0"}),
        target=0.3,
    ),
    Measurement(
        "empty-home",
        "fit() to the first line, nothing there yet",
        "first_s",
        "s",
        _trainlib("empty_home"),
        Side("a used home", START[0].script),
        target=1.3,
    ),
    Measurement("whole-script", "a trivial script, from start to end", "whole_s", "s", *WHOLE, target=0.5),
    Measurement("leaving", "the same, from its last line to its end", "leaving_s", "s", *WHOLE, target=0.5),
    Measurement("import", "import of the library", "import_s", "s", *IMPORT, target=0.3),
    Measurement("import-torch", "import of its torch trainer", "import_torch_s", "s", *IMPORT, target=0.3),
    Measurement(
        "report", "one report() until recorded", "report_s", "s", _trainlib("report"), _ray("report"), target=0.2
    ),
    Measurement(
        "recovery",
        "SIGKILL of a worker to the resumed first line",
        "recovery_s",
        "s",
        _trainlib("recovery"),
        _ray("recovery"),
        target=0.5,
    ),
    Measurement(
        "checkpoint",
        "report() blocks for a 1 GiB directory",
        "block_s",
        "s",
        _trainlib("checkpoint"),
        Side("one copy", "checkpoint_copy"),
        target=1.0,
    ),
    Measurement(
        "checkpoint-saved",
        "the same directory until it is safe from a power loss",
        "saved_s",
        "s",
        _trainlib("checkpoint_saved"),
        Side("one copy, synced", "checkpoint_saved_copy"),
        target=1.5,
    ),
    Measurement(
        "ingest",
        "rows per second into 2 workers, through a map step",
        "rows_per_s",
        "/s",
        _trainlib("ingest"),
        Side("2 plain actors", "ingest_bare"),
        target=0.95,
        more_is_better=True,
    ),
    Measurement(
        "memory",
        "memory to stream 4 GiB, beyond an empty run",
        "gigabytes",
        " GB",
        _trainlib("memory"),
        Side("the data", "memory_data"),
        target=0.35,
    ),
    Measurement(
        "preprocess",
        "preprocess what is already preprocessed",
        "preprocess_s",
        "s",
        Side("trainlib", "preprocess_again"),
        Side("the first time", "preprocess_first"),
        target=0.1,
    ),
    Measurement(
        "tune-torch",
        "12 short trials of a 2-worker torch trainer, fresh process",
        "sweep_s",
        "s",
        _trainlib("tune_torch"),
        Side("Ray Tune", "tune_torch_ray", _V1),
        target=0.15,
    ),
    Measurement(
        "tune-many",
        "a trial of a trivial function, in a sweep of 1,000",
        "trial_s",
        "s",
        _trainlib("tune_many"),
        Side("Ray Tune", "tune_many_ray", _V1),
        target=0.5,
    ),
    Measurement(
        "tune-many-reused",
        "the same, against reuse_actors=True",
        "trial_s",
        "s",
        _trainlib("tune_many"),
        Side("Ray Tune", "tune_many_ray_reused", _V1),
        target=0.5,
    ),
    Measurement(
        "tune-asha-epochs",
        "epochs of 24 trials on digits under ASHA",
        "epochs",
        " epochs",
        *ASHA,
        target=0.5,
    ),
    Measurement(
        "tune-asha-accuracy",
        "the best accuracy of the same trials",
        "accuracy",
        " %",
        *ASHA,
        target=0.98,
        more_is_better=True,
    ),
)
