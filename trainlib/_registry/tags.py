"""The name of every tag that trainlib sets in MLflow. No other module spells one.

People see these names in MLflow's UI and search by them, and later versions have to read them: a name that has
been released stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainlib._registry.names import stored_name
from trainlib._registry.notes import flow_run_line

# -- on runs ----------------------------------------------------------------------------------------------

KIND = "trainlib.kind"
"""``training`` or ``sweep``. The run of a trial has none: it is found through its sweep."""
NAME = "trainlib.name"
"""``RunConfig.name``. A training that was interrupted is found again by it."""
GENERATION = "trainlib.generation"
"""Which run of its name, kind and experiment it is, counted from 1: clocks may be set back, so they do not tell which is
the newest. It has zeros before it, because MLflow sorts tags as texts."""
FLOW_RUN_ID = "trainlib.flow_run_id"
"""The Prefect flow run that worked on the run last."""
DRIVER = "trainlib.driver"
"""The process that worked on the run last, as ``host:pid:start``."""
LOG_FOLDER = "trainlib.log_folder"
"""The folder of its logs, below that of all runs, if it is not named after the run."""
FUNCTION_DIGEST = "trainlib.digest.function"
"""A digest of the code that is trained. An interrupted run is continued only if this and the next two are unchanged."""
CONFIG_DIGEST = "trainlib.digest.config"
"""A digest of the config of the training function, or of the search space."""
DATA_DIGEST = "trainlib.digest.data"
"""A digest of the datasets and the preprocessor."""
HEARTBEAT = "trainlib.heartbeat"
"""A counter that moves while the process that owns the run lives, as ``owner number:count``."""
RELEASED = "trainlib.released"
"""The number of the owner that has ended the run last, and does not work on it any more."""
FORMAT = "trainlib.format"
"""Which version of trainlib's format the run, with its settings, is written in. Checkpoints have it too."""
FRAMEWORK = "trainlib.framework"
"""The framework of the backend, such as ``torch``."""
SEEDS = "trainlib.seeds"
"""The seeds that ranks have set with ``enable_reproducibility()`` or ``torch.manual_seed()``, by rank, as JSON."""
ATTEMPTS = "trainlib.attempts"
"""How many attempts have been recorded."""

SPENT = "trainlib.spent_s"
"""How many seconds of ``RunConfig.max_time_s`` are used: the time in which workers ran, in all attempts."""
STOPPED = "trainlib.stopped"
"""Which limit of ``RunConfig`` has ended the training: ``time limit``, ``nan`` or ``diverged``. Empty once it was
continued."""

FORKED_FROM = "trainlib.forked_from"
"""The checkpoint that a training was started from by ``trainlib fork``."""

SWEEP_SPACE = "trainlib.sweep.space"
"""On the run of a sweep: a digest of its search space. It is written last, so a sweep that has it can be restored."""
SWEEP_SPENT = "trainlib.sweep.spent_s"
"""On the run of a sweep: how many seconds of its time budget are spent."""
TRIAL_NUMBER = "trainlib.trial"
"""On the run of a trial: its number."""
TRIAL_POINT_PIECES = "trainlib.trial.points"
"""On the run of a trial: in how many tags its point of the search space is kept."""

_ATTEMPT = "trainlib.attempt."
_OWNER = "trainlib.owner."
_TURN = "trainlib.turn."
_TURNS_ENDED = "trainlib.turns_ended."
_TRIAL_POINT = "trainlib.trial.point."

# -- on checkpoints, which are logged models --------------------------------------------------------------

CHECKPOINT_INDEX = "trainlib.checkpoint"
"""The number of a checkpoint. A logged model without this tag is none of ours."""
ITERATION = "trainlib.iteration"
"""The iteration that a checkpoint was reported with. Model versions have it too."""
CHECKPOINT_KIND = "trainlib.checkpoint.kind"
"""On a checkpoint: the framework whose class it was reported as, such as ``torch``. A plain one has none."""
SECONDS = "trainlib.seconds"
"""How long the training had taken by then."""
SCORE = "trainlib.score"
"""The value of ``CheckpointConfig.checkpoint_score_attribute``."""
METRICS = "trainlib.metrics"
"""The metrics that a checkpoint was reported with, as JSON, unless they are too long for a tag."""

DELETED = "trainlib.deleted"
"""On a checkpoint that is being deleted, while its files may still be there. It does not count any more."""

# -- on model versions ------------------------------------------------------------------------------------

LOCATION = "trainlib.location"
"""Where the files of the checkpoint are."""
SERVED = "trainlib.served"
"""``yes`` if MLflow can load and serve the version by itself, else why it cannot."""
CODE = "trainlib.code"
"""The script that started the training."""
GIT_COMMIT = "trainlib.git_commit"
"""The commit that the script was started from."""
HELD_OUT_DATA = "trainlib.test_data"
"""What it was evaluated on, which neither training nor selection has seen: how many rows, a digest of them, and of the code."""

# -- on models --------------------------------------------------------------------------------------------

_ALIAS_TRAIL = "trainlib.alias."
_MODEL_METRIC = "trainlib.metric."
_HELD_OUT_METRIC = "trainlib.test."
_DATA = "trainlib.data."

# -- tags that MLflow and Prefect give a meaning ----------------------------------------------------------

MLFLOW_PARENT = "mlflow.parentRunId"
"""The sweep's run, on the run of a trial. MLflow's UI nests runs by it."""
MLFLOW_USER = "mlflow.user"
"""Who started the run."""
MLFLOW_SOURCE_NAME = "mlflow.source.name"
"""The script that started the run."""
MLFLOW_SOURCE_TYPE = "mlflow.source.type"
"""What kind of source that is."""
MLFLOW_GIT_COMMIT = "mlflow.source.git.commit"
"""The commit that the script was started from."""
MLFLOW_NOTE = "mlflow.note.content"
"""The description on the page of a run, as Markdown."""
MLFLOW_DATA_CONTEXT = "mlflow.data.context"
"""What a dataset is used for, such as ``train``. It is a tag of a run's input."""
_SHARED_VIEW = "mlflow.sharedViewState."
FLOW_RUN_URL = "prefect.flow_run_url"
"""The page of the flow run in Prefect's UI."""


def attempt(number: int) -> str:
    """The tag that keeps the record of an attempt.

    Example:
        >>> attempt(2)
        'trainlib.attempt.002'
    """
    return f"{_ATTEMPT}{number:03d}"


def is_attempt(tag: str) -> bool:
    """Whether a tag keeps the record of an attempt.

    Example:
        >>> is_attempt(attempt(2)), is_attempt(ATTEMPTS)
        (True, False)
    """
    return tag.startswith(_ATTEMPT)


def owner(number: int) -> str:
    """The param by which a process becomes the owner of a run. It is a param, and not a tag, since MLflow lets nobody
    change a param: of two processes that want to be the same owner, the first one is.

    Example:
        >>> owner(2)
        'trainlib.owner.2'
    """
    return f"{_OWNER}{number}"


def owner_number(param: str) -> int | None:
    """The number in the name of such a param. None for other params.

    Example:
        >>> owner_number(owner(2)), owner_number("lr")
        (2, None)
    """
    number = param.removeprefix(_OWNER)
    return int(number) if number != param and number.isdigit() else None


def turn(subject: str, number: int) -> str:
    """The param by which a process has a turn, such as that of moving an alias.

    Example:
        >>> turn("alias", 3)
        'trainlib.turn.alias.3'
    """
    return f"{_TURN}{subject}.{number}"


def turn_number(subject: str, param: str) -> int | None:
    """The number in the name of such a param. None for other params.

    Example:
        >>> turn_number("alias", turn("alias", 3)), turn_number("alias", turn("another", 3))
        (3, None)
    """
    number = param.removeprefix(f"{_TURN}{subject}.")
    return int(number) if number != param and number.isdigit() else None


def turns_ended(subject: str) -> str:
    """The tag that says which turn ended last.

    Example:
        >>> turns_ended("alias")
        'trainlib.turns_ended.alias'
    """
    return f"{_TURNS_ENDED}{subject}"


def is_internal(param: str) -> bool:
    """Whether a param of a run is none of its settings, but tells who owns it, or whose turn it is.

    Example:
        >>> is_internal(owner(2)), is_internal(turn("alias", 3)), is_internal("lr")
        (True, True, False)
    """
    return param.startswith((_OWNER, _TURN))


def trial_point_piece(index: int) -> str:
    """The tag that keeps a piece of a trial's point.

    Example:
        >>> trial_point_piece(0)
        'trainlib.trial.point.000'
    """
    return f"{_TRIAL_POINT}{index:03d}"


def metrics_piece(index: int) -> str:
    """The tag that keeps a piece of the metrics of a checkpoint. Few metrics need only one.

    Example:
        >>> metrics_piece(0), metrics_piece(1)
        ('trainlib.metrics', 'trainlib.metrics.1')
    """
    return METRICS if index == 0 else f"{METRICS}.{index}"


def model_metric(metric: str) -> str:
    """The tag that keeps the metric by which a model version was selected.

    Example:
        >>> model_metric("accuracy")
        'trainlib.metric.accuracy'
    """
    return stored_name(f"{_MODEL_METRIC}{metric}")


def held_out_metric(metric: str) -> str:
    """The tag that keeps a metric of a model version on rows that were held out.

    Example:
        >>> held_out_metric("accuracy")
        'trainlib.test.accuracy'
    """
    return stored_name(f"{_HELD_OUT_METRIC}{metric}")


def alias_trail(alias: str) -> str:
    """The tag of a model that keeps which versions an alias has pointed to, as JSON, the newest last.

    Example:
        >>> alias_trail("best")
        'trainlib.alias.best'
    """
    return f"{_ALIAS_TRAIL}{alias}"


def data(name: str) -> str:
    """The tag that says which data a model version was trained on, for one of its datasets.

    Example:
        >>> data("train")
        'trainlib.data.train'
    """
    return stored_name(f"{_DATA}{name}")


def shared_view(key: str) -> str:
    """The tag of an experiment that keeps a view of its table of runs, which a link can name by its key.

    Example:
        >>> shared_view("abc")
        'mlflow.sharedViewState.abc'
    """
    return f"{_SHARED_VIEW}{key}"


def of_flow_run(name: str, url: str) -> dict[str, str]:
    """The tags that lead from an MLflow run to its Prefect flow run.

    Example:
        >>> of_flow_run("brave-fox", "http://prefect/1")
        {'prefect.flow_run_url': 'http://prefect/1', 'mlflow.note.content': '[Prefect flow run brave-fox](http://prefect/1)'}
    """
    return {FLOW_RUN_URL: url, MLFLOW_NOTE: flow_run_line(name, url)}


def prefect_only(tags: Mapping[str, str]) -> dict[str, str]:
    """Those tags that are Prefect's. Trials have them in common with their sweep.

    Example:
        >>> prefect_only(of_flow_run("brave-fox", "http://prefect/1"))
        {'prefect.flow_run_url': 'http://prefect/1'}
    """
    return {tag: value for tag, value in tags.items() if tag.startswith("prefect.")}


def where(tag: str, value: str) -> str:
    """The part of a search filter that a tag has this value.

    Example:
        >>> where(KIND, "sweep")
        "tags.`trainlib.kind` = 'sweep'"
    """
    return f"tags.`{tag}` = {quoted(value)}"


def quoted(value: str) -> str:
    """A text as it is written in MLflow's search filters.

    Example:
        >>> quoted("digits"), quoted("Ada's")
        ("'digits'", '"Ada\\'s"')
    """
    if "'" not in value:
        return f"'{value}'"
    return '"' + value.replace('"', "") + '"'  # MLflow has no way to write both kinds of quotes
