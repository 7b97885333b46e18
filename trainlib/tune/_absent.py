"""Names of ``ray.tune`` that have no counterpart here, and what to use instead."""

from __future__ import annotations

__all__ = ["INSTEAD", "refuse"]

_VERBOSE = "progress is shown by itself, in the terminal or the notebook. RunConfig(verbose=0) to 3 says how much"
_FUNCTION = "write a function that calls tune.report(), or use a trainer such as TorchTrainer"
_TUNER = "make a Tuner, or call tune.run(), for each of them"

INSTEAD = {
    "CLIReporter": _VERBOSE,
    "Experiment": _TUNER,
    "JupyterNotebookReporter": _VERBOSE,
    "ProgressReporter": _VERBOSE,
    "ResumeConfig": "call Tuner.restore(path, resume_errored=True) to run failed trials again",
    "SyncConfig": "RunConfig(storage_path=...) says where everything is kept. There is nothing to sync",
    "Trainable": _FUNCTION,
    "create_scheduler": "name it, TuneConfig(scheduler='asha'), or make one, e.g. tune.ASHAScheduler()",
    "create_searcher": "name it, TuneConfig(search_alg='tpe'), or pass a sampler of Optuna",
    "register_env": "it is for RLlib, whose algorithms read ray.tune's: import it from there",
    "register_trainable": "pass the function or the trainer itself to Tuner",
    "run_experiments": _TUNER,
}


def refuse(name: str) -> None:
    """Raise an error if it is one of these names.

    Raises:
        ImportError: it is one. ``from trainlib.tune import ...`` would replace an AttributeError, and what it says.
    """
    if name in INSTEAD:
        raise ImportError(f"trainlib.tune has no {name}: {INSTEAD[name]}", name="trainlib.tune")
