"""Plots of a sweep."""

from __future__ import annotations

import matplotlib
import optuna

from trainlib.tune._plots import draw


def test_drawing_does_not_change_the_users_style(tmp_path):
    before = dict(matplotlib.rcParams)
    study = optuna.create_study()
    for x in (0.1, 0.5, 0.9):
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        study.tell(trial, x)
    drawn = draw(study, tmp_path, "loss")
    assert {path.stem for path in drawn} == {"optimization_history", "parallel_coordinates", "param_importances"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert dict(matplotlib.rcParams) == before
