"""Plots of a sweep: optimization history, parallel coordinates and param importances."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Study

    from trainlib.tune._sweep import Sweep

__all__ = ["artifact_path", "load_plotting", "save_plots"]

_FOLDER = "plots"
_DPI = 80
_SIZE = (7.0, 4.0)


def load_plotting() -> None:
    """Import the plotting libraries in a thread. It takes seconds, and the end of a sweep should not wait for it."""

    def load() -> None:
        import optuna.importance
        import optuna.visualization.matplotlib  # noqa: F401

    threading.Thread(target=load, name="plots", daemon=True).start()


def save_plots(sweep: Sweep, say: Callable[[str], None]) -> list[Path]:
    """Save the plots as artifacts of the sweep's run. Returns the local files."""
    folder = sweep.run.log_dir / _FOLDER
    try:
        drawn = draw(sweep.search.study, folder, sweep.metric or "") if sweep.metric else []
        for path in drawn:
            sweep.run.client.log_artifact(sweep.run.run_id, str(path), _FOLDER)
    except Exception as error:  # a sweep must not fail because a plot does
        say(f"the plots of the sweep could not be drawn: {error}")
        return []
    return drawn


def artifact_path(plot: Path) -> str:
    """Where a plot is among the artifacts of the sweep's run.

    Example:
        >>> artifact_path(Path("/tmp/plots/optimization_history.png"))
        'plots/optimization_history.png'
    """
    return f"{_FOLDER}/{plot.name}"


def draw(study: Study, folder: Path, metric: str) -> list[Path]:
    """Draw a study. Needs two finished trials, and for plots of params, a param that differs between them."""
    import matplotlib.pyplot as plt
    from optuna.trial import TrialState

    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < 2:
        return []
    from optuna.visualization import matplotlib as pictures

    named: dict[str, Any] = {"optimization_history": pictures.plot_optimization_history}
    varied = {name for name in complete[0].params if len({trial.params.get(name) for trial in complete}) > 1}
    if varied:
        named["parallel_coordinates"] = pictures.plot_parallel_coordinate
    if varied and len({trial.value for trial in complete}) > 1:
        named["param_importances"] = pictures.plot_param_importances
    folder.mkdir(parents=True, exist_ok=True)
    with plt.ioff(), plt.rc_context():  # show nothing in a notebook, and keep the user's style
        return [_save(plot, study, folder / f"{name}.png", metric) for name, plot in named.items()]


def _save(plot: Any, study: Study, path: Path, metric: str) -> Path:
    import matplotlib.pyplot as plt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls these plots experimental
        axes = plot(study, target=lambda trial: trial.value, target_name=metric)
    figure = axes.figure
    for each in figure.axes:
        _write_powers_plainly(each)
    figure.set_size_inches(*_SIZE)
    figure.savefig(path, dpi=_DPI, bbox_inches="tight")
    plt.close(figure)
    return path


def _write_powers_plainly(axes: Any) -> None:
    """Write 0.01 on logarithmic scales. The default, a typeset power of ten, takes longer than all else."""
    from matplotlib.ticker import LogFormatter, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(LogFormatter())
            axis.set_minor_formatter(NullFormatter())
