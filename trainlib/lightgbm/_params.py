"""LightGBM's parameters that mean something to the trainer, in all spellings, and those that it cannot take."""

from __future__ import annotations

from typing import Any

from trainlib.errors import InvalidArgumentError

__all__ = ["ALIASES", "canonical", "is_forest", "is_on", "require_free"]

ALIASES: dict[str, tuple[str, ...]] = {
    "bin_construct_sample_cnt": ("subsample_for_bin",),
    "boosting": ("boosting_type", "boost"),
    "data": ("train", "train_data", "train_data_file", "data_filename"),
    "data_random_seed": ("data_seed",),
    "device_type": ("device",),
    "early_stopping_round": ("early_stopping_rounds", "early_stopping", "n_iter_no_change"),
    "group_column": ("group", "group_id", "query_column", "query", "query_id"),
    "ignore_column": ("ignore_feature", "blacklist"),
    "input_model": ("model_input", "model_in"),
    "label_column": ("label",),
    "linear_tree": ("linear_trees",),
    "local_listen_port": ("local_port", "port"),
    "machine_list_filename": ("machine_list_file", "machine_list", "mlist"),
    "machines": ("workers", "nodes"),
    "max_bin": ("max_bins",),
    "num_class": ("num_classes",),
    "num_iterations": (
        "num_iteration",
        "n_iter",
        "num_tree",
        "num_trees",
        "num_round",
        "num_rounds",
        "nrounds",
        "num_boost_round",
        "n_estimators",
        "max_iter",
    ),
    "num_machines": ("num_machine",),
    "num_threads": ("num_thread", "nthread", "nthreads", "n_jobs"),
    "objective": ("objective_type", "app", "application", "loss"),
    "output_model": ("model_output", "model_out"),
    "pre_partition": ("is_pre_partition",),
    "seed": ("random_seed", "random_state"),
    "snapshot_freq": ("save_period",),
    "time_out": (),
    "tree_learner": ("tree", "tree_type", "tree_learner_type"),
    "valid": ("test", "valid_data", "valid_data_file", "test_data", "test_data_file", "valid_filenames"),
    "verbosity": ("verbose",),
    "weight_column": ("weight",),
}

_YES = ("true", "1", "+", "yes", "t")
_NAMES = {alias: name for name, aliases in ALIASES.items() for alias in aliases}
_WORKERS = "trainlib connects the workers. Leave it out: ScalingConfig(num_workers=...) says how many there are"
_INSTEAD = {
    "num_iterations": "Pass num_boost_round=... to LightGBMTrainer",
    "machines": _WORKERS,
    "num_machines": _WORKERS,
    "local_listen_port": _WORKERS,
    "machine_list_filename": _WORKERS,
    "pre_partition": "trainlib gives each worker its share of the rows. Leave it out",
    "time_out": "Pass lightgbm_config=LightGBMConfig(timeout_s=...) to LightGBMTrainer",
    "data": "Pass datasets={'train': ...} to LightGBMTrainer",
    "valid": "Pass datasets={'train': ..., 'valid': ...} to LightGBMTrainer",
    "label_column": "Pass label_column=... to LightGBMTrainer",
    "weight_column": "Name the column in dmatrix_params={'train': {'weight': ...}}",
    "group_column": "Name the column in dmatrix_params={'train': {'qid': ...}}",
    "ignore_column": "Drop the column from the datasets",
    "input_model": "Pass resume_from_checkpoint=LightGBMCheckpoint.from_model(booster) to LightGBMTrainer",
    "output_model": "result.checkpoint.get_model() is the model",
    "snapshot_freq": "Use RunConfig(checkpoint_config=CheckpointConfig(checkpoint_frequency=...))",
}
_LEARNERS = ("data", "data_parallel", "voting", "voting_parallel")
"""Those that train on rows of which each worker has its share."""


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters under their usual names, if the trainer knows these. LightGBM, too, lets the usual name win.

    Example:
        >>> canonical({"n_jobs": 2, "verbose": 1, "verbosity": 0, "eta": 0.1})
        {'num_threads': 2, 'verbosity': 0, 'eta': 0.1}
    """
    renamed: dict[str, Any] = {}
    for name, value in params.items():
        usual = _NAMES.get(name, name)
        if usual == name or (usual not in params and usual not in renamed):
            renamed[usual] = value
    return renamed


def is_forest(params: dict[str, Any]) -> bool:
    """Whether the model is a random forest.

    Example:
        >>> is_forest({"boost": "random_forest"}), is_forest({})
        (True, False)
    """
    return canonical(params).get("boosting") in ("rf", "random_forest")


def is_on(params: dict[str, Any], name: str, default: bool) -> bool:
    """Whether a parameter says yes, in any of the ways in which LightGBM may be told so.

    Example:
        >>> is_on({"linear_trees": "+"}, "linear_tree", False), is_on({}, "boost_from_average", True)
        (True, True)
    """
    return str(canonical(params).get(name, default)).lower() in _YES


def require_free(params: dict[str, Any]) -> None:
    """Raise an InvalidArgumentError if parameters say what the trainer has to say.

    Example:
        >>> require_free({"n_estimators": 100})
        Traceback (most recent call last):
        ...
        trainlib.errors.InvalidArgumentError: params has 'n_estimators', which LightGBMTrainer sets. Pass num_boost_round=... to LightGBMTrainer
    """
    for name, value in params.items():
        usual = _NAMES.get(name, name)
        if usual in _INSTEAD:
            raise InvalidArgumentError(f"params has {name!r}, which LightGBMTrainer sets. {_INSTEAD[usual]}")
        if usual == "tree_learner" and value not in _LEARNERS:
            raise InvalidArgumentError(
                f"{name} is {value!r}, but each worker has its share of the rows. Use 'data' or 'voting', or leave it out"
            )
    if not isinstance(params.get("early_stopping_min_delta", 0.0), (int, float)):
        raise InvalidArgumentError("early_stopping_min_delta has to be one number, for all metrics")
