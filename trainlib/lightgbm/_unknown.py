"""Parameters that LightGBM does not know, or whose values it does not take. Of some it only warns, where nobody may see it."""

from __future__ import annotations

import ctypes
import difflib
import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from trainlib.errors import InvalidArgumentError
from trainlib.lightgbm._quiet import no_errors_printed
from trainlib.lightgbm._trial import Trial, as_text, try_out

__all__ = ["require_known"]

_AT_FIRST = 1 << 16
"""Bytes for the list of all parameters. It had 9,000 in LightGBM 4.7."""
_NOT_TRIED = (
    "categorical_feature",
    "cegb_penalty_feature_coupled",
    "cegb_penalty_feature_lazy",
    "device_type",
    "early_stopping_round",
    "feature_contri",
    "forcedbins_filename",
    "forcedsplits_filename",
    "interaction_constraints",
    "max_bin_by_feature",
    "monotone_constraints",
    "num_threads",
    "verbosity",
)
"""Parameters whose values depend on the columns, or on the workers' hosts, and those that a trial has values of its own for; and early
stopping, which LightGBM does not do here."""
_WRONG = re.compile(
    r"^(Unknown (objective|boosting|tree learner|token|sample strategy)|Parameter \S+ should be|Multiclass objective|Number of classes"
    r"|Cannot set|Cannot use (bagging in GOSS|\S+ objective when)|auc_mu_weights must"
    r"|Check failed.*(config_auto|alpha_ > 0|bagging_freq > 0|top_rate))"
)
"""Errors that do not depend on the rows. Others may, and are left to the training."""
_IN_WORDS = {
    "alpha_ > 0 && alpha_ < 1": "the objective quantile needs an alpha between 0 and 1",
    "config->bagging_freq > 0": "a random forest needs bagging_freq above 0 and a bagging_fraction below 1, or a feature_fraction below 1",
    "config_->top_rate + config_->other_rate": "top_rate and other_rate may not be more than 1 together",
}
"""What LightGBM says in its own code, by a part of it."""
_NO_METRIC = ("", "none", "na", "null", "custom")
"""How one says that nothing is to be measured."""


def require_known(params: dict[str, Any], library: ctypes.CDLL) -> None:
    """Raise an InvalidArgumentError if LightGBM has no parameter of a name, in any spelling, or does not take its value.

    Args:
        params: The parameters.
        library: LightGBM's compiled part.
    """
    usual = _usual_names(library)
    if not usual:
        return
    if unknown := [name for name in params if name not in usual]:
        close = difflib.get_close_matches(unknown[0], usual, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidArgumentError(
            f"LightGBM does not know the parameter{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))} in "
            f"params.{meant} Correct its name or leave it out"
        )
    tried: dict[str, str] = {}
    for name, value in params.items():
        if value is None or usual[name] in _NOT_TRIED:
            continue
        if (text := as_text(value)) is None:
            raise InvalidArgumentError(f"{name} is {value!r:.80}: pass a number, a text or a list")
        tried[name] = text
    problems: list[str] = []
    thread = threading.Thread(target=_try, args=(tried, params, usual, library, problems), name="lightgbm-parameters")
    with no_errors_printed():
        thread.start()
        thread.join()
    if problems:
        raise InvalidArgumentError(problems[0])


def _try(
    tried: dict[str, str],
    params: Mapping[str, Any],
    usual: Mapping[str, str],
    library: ctypes.CDLL,
    problems: list[str],
) -> None:
    """Note what is wrong with the parameters, if something is."""
    whole = try_out(tried, library)
    if whole.error is not None:
        if _WRONG.search(whole.error):
            problems.append(_refused(whole, tried, params, library))
        return
    others = {name: text for name, text in tried.items() if usual[name] != "metric"}
    for metric in (each for name, text in tried.items() if usual[name] == "metric" for each in text.split(",")):
        if metric.lower() in _NO_METRIC:
            continue
        # LightGBM takes parameters apart where spaces are, and leaves out metrics that it does not know.
        if metric.split() != [metric] or not try_out({**others, "metric": metric}, library).metrics:
            problems.append(
                f"LightGBM does not know the metric {metric!r} in params, and would leave it out. Correct its name, or leave it out"
            )


def _refused(whole: Trial, tried: Mapping[str, str], params: Mapping[str, Any], library: ctypes.CDLL) -> str:
    """What is wrong, with the parameter that is wrong by itself, if there is one."""
    why = str(whole.error).partition(" at /")[0]  # the line in LightGBM's code
    why = next((words for code, words in _IN_WORDS.items() if code in why), why)
    for name, text in tried.items():
        if try_out({name: text}, library).error == whole.error:
            return f"LightGBM does not accept {name}={params[name]!r:.80} in params: {why}"
    return f"LightGBM does not accept params: {why}"


def _usual_names(library: ctypes.CDLL) -> dict[str, str]:
    """What each parameter is usually called, by all names. None, if LightGBM does not say."""
    size, length = _AT_FIRST, ctypes.c_int64(0)
    while True:
        text = ctypes.create_string_buffer(size)
        if library.LGBM_DumpParamAliases(ctypes.c_int64(size), ctypes.byref(length), text) != 0:
            return {}
        if length.value <= size:
            aliases: dict[str, list[str]] = json.loads(text.value.decode())
            return {each: name for name, others in aliases.items() for each in (name, *others)}
        size = length.value
