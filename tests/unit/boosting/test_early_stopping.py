"""Early stopping ends where the libraries' own would, and where it would have ended if no attempt had failed."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pytest
import xgboost

from trainlib import session
from trainlib._boosting.early_stopping import EarlyStopping, Score
from trainlib._boosting.rounds import Rounds
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.lightgbm import _boost as lightgbm_boost
from trainlib.lightgbm._boost import judged
from trainlib.session import TrainContext
from trainlib.xgboost._rounds import ReportRounds, _higher_is_better

RNG = np.random.default_rng(0)
ROWS, VALID = RNG.normal(size=(300, 4)), RNG.normal(size=(300, 4))
LABELS, VALID_LABELS = ((rows[:, 0] + RNG.normal(size=300) > 0).astype(int) for rows in (ROWS, VALID))


class Alone:
    """The session of a worker that trains alone. It keeps what is reported."""

    def __init__(self, run: str = "run", attempt: int = 1, checkpoint: Checkpoint | None = None) -> None:
        self.context = TrainContext(run_id=run, attempt=attempt)
        self.checkpoint_config = CheckpointConfig()
        self.checkpoint_was_asked_for = False
        self.checkpoint = checkpoint
        self.reports: list[tuple[dict, Checkpoint | None]] = []

    def report(self, metrics, checkpoint, when_stopped=None):
        self.reports.append((metrics, checkpoint))
        self.checkpoint = checkpoint or self.checkpoint

    def latest_checkpoint(self):
        return self.checkpoint


@pytest.fixture
def alone():
    running = Alone()
    session.enter(running)
    yield running
    session.enter(None)


@pytest.mark.parametrize("metrics", [["auc", "logloss"], ["logloss", "auc"]], ids=["lower", "higher"])
def test_xgboost_ends_where_its_own_early_stopping_would(alone, metrics):
    train, valid = xgboost.DMatrix(ROWS, LABELS), xgboost.DMatrix(VALID, VALID_LABELS)
    params = {"objective": "binary:logistic", "eval_metric": metrics, "nthread": 1}
    evals = [(train, "train"), (valid, "valid")]
    bare = xgboost.train(params, train, 100, evals=evals, early_stopping_rounds=4, verbose_eval=False)
    rounds = Rounds(100, 0, EarlyStopping(4))
    xgboost.train(params, train, 100, evals=evals, callbacks=[ReportRounds(rounds)], verbose_eval=False)
    assert len(alone.reports) == bare.num_boosted_rounds() < 100
    assert [checkpoint is not None for _, checkpoint in alone.reports] == [False] * (rounds.done - 1) + [True]
    model = alone.reports[-1][1].get_model()
    assert (model.best_iteration, model.best_score) == (bare.best_iteration, pytest.approx(bare.best_score))
    last, best = alone.reports[-1][0], alone.reports[bare.best_iteration][0]
    assert last == best, "the model is recorded with what it was measured at"
    assert last[f"valid-{metrics[-1]}"] == pytest.approx(bare.best_score)


def test_a_model_that_is_saved_on_the_way_has_the_rounds_that_it_was_measured_with(alone):
    alone.checkpoint_config = CheckpointConfig(checkpoint_frequency=1)
    train, valid = xgboost.DMatrix(ROWS, LABELS), xgboost.DMatrix(VALID, VALID_LABELS)
    params = {"objective": "binary:logistic", "nthread": 1}
    evals = [(train, "train"), (valid, "valid")]
    callbacks = [ReportRounds(Rounds(100, 0, EarlyStopping(4)))]
    xgboost.train(params, train, 100, evals=evals, callbacks=callbacks, verbose_eval=False)
    *before, last = [checkpoint.get_model() for _, checkpoint in alone.reports]
    assert [each.attr("best_iteration") for each in before] == [None] * len(before)
    assert last.best_iteration == len(before) - 4


@pytest.mark.parametrize("only_first", [False, True])
@pytest.mark.parametrize("total", [100, 3], ids=["early", "not at all"])
def test_lightgbm_ends_where_its_own_early_stopping_would(only_first, total):
    params = {"objective": "binary", "metric": ["auc", "binary_logloss"], "num_threads": 1, "verbosity": -1}
    train = lightgbm.Dataset(ROWS, LABELS)
    valid = lightgbm.Dataset(VALID, VALID_LABELS, reference=train)
    stopping, ended = EarlyStopping(4), []

    def judge(env):
        metrics = {f"{dataset}-{metric}": value for dataset, metric, value, *_ in env.evaluation_result_list}
        ended.append(
            stopping.is_over(env.iteration + 1, judged(env.evaluation_result_list, metrics, only_first=only_first))
        )

    judge.order = 0
    bare = lightgbm.train(
        params,
        train,
        total,
        valid_sets=[train, valid],
        valid_names=["train", "valid"],
        callbacks=[judge, lightgbm.early_stopping(4, first_metric_only=only_first, verbose=False)],
    )
    assert (ended[-1], any(ended[:-1])) == (total == 100, False)
    assert stopping.best_round == bare.best_iteration
    assert lightgbm_boost.canonical({"early_stopping": 4}) == {"early_stopping_round": 4}


def test_the_last_report_has_the_metrics_of_the_round_that_ends_the_training_whichever_metric_that_is(alone, tmp_path):
    alone.checkpoint_config = CheckpointConfig(checkpoint_frequency=3)
    curves = {"valid-auc": [0.5, 0.6, 0.7, 0.8, 0.9], "valid-loss": [1.0, 0.4, 0.5, 0.6, 0.7]}

    def go_on(rounds: Rounds, until: int) -> None:
        while rounds.left and rounds.done < until:
            metrics = {name: values[rounds.done] for name, values in curves.items()}
            rounds.end_round([Score(name, value, name == "valid-auc") for name, value in metrics.items()])
            rounds.report(metrics, lambda: saved(alone, tmp_path / str(rounds.done)))

    go_on(Rounds(10, 0, EarlyStopping(3)), 3)
    go_on(Rounds(10, 3, EarlyStopping(3)), 5)  # another attempt, which has not seen the best round
    assert [metrics["valid-loss"] for metrics, _ in alone.reports] == [1.0, 0.4, 0.5, 0.6, 0.4]
    assert alone.reports[-1][0] == {"valid-auc": 0.6, "valid-loss": 0.4}


def saved(alone: Alone, folder) -> Checkpoint:
    folder.mkdir(exist_ok=True)
    return Checkpoint(folder)


def boost(rounds: Rounds, folder, losses: list[float]) -> None:
    for loss in losses[rounds.done :]:
        is_last = rounds.end_round([Score("valid-loss", loss, False)])
        rounds.report({"valid-loss": loss}, lambda: saved(None, folder))
        if is_last:
            return


def test_a_retry_counts_on_and_one_after_the_end_trains_no_more(alone, tmp_path):
    losses = [1.0, 0.5, 0.6, 0.7, 0.8, 0.9]
    alone.checkpoint_config = CheckpointConfig(checkpoint_frequency=3)
    boost(Rounds(10, 0, EarlyStopping(3)), tmp_path / "first", losses[:3])
    state = json.loads((tmp_path / "first" / "early_stopping.json").read_text())
    assert (state["best_round"], state["is_over"]) == (2, False)

    retry = Alone(attempt=2, checkpoint=alone.checkpoint)
    session.enter(retry)
    rounds = Rounds(10, 3, EarlyStopping(3))
    assert rounds.left == 7
    boost(rounds, tmp_path / "second", losses)
    assert rounds.done == 5, "3 rounds after the best one, although another attempt has seen that"

    session.enter(Alone(attempt=3, checkpoint=retry.checkpoint))
    assert Rounds(10, 2, EarlyStopping(3)).left == 0, "LightGBM's model ends with its best round"
    session.enter(Alone(run="another", checkpoint=retry.checkpoint))
    assert Rounds(10, 5, EarlyStopping(3)).left == 5, "whoever goes on from a checkpoint begins to count anew"


def judged_by(values: list[float], patience: int) -> tuple[int, list[bool]]:
    stopping = EarlyStopping(patience)
    over = [stopping.is_over(done, [Score("valid-auc", value, True)]) for done, value in enumerate(values, 1)]
    return stopping.best_round, over


def test_a_metric_that_is_no_number_at_first_is_judged_once_it_is_one_and_one_that_never_is_says_so(alone, tmp_path):
    nan = float("nan")
    assert judged_by([nan, nan, 0.5, 0.4, nan, 0.3], patience=3) == (3, [False] * 5 + [True])
    assert judged_by([nan, nan], patience=3) == (2, [False, False]), "a training that ends before has all of its rounds"
    message = r"cannot judge by 'valid-auc': it was NaN in all of the first 3 rounds\. Look at the labels"
    with pytest.raises(ValueError, match=message):
        judged_by([nan] * 3, patience=3)
    alone.checkpoint_config = CheckpointConfig(checkpoint_frequency=2)
    boost(Rounds(10, 0, EarlyStopping(3)), tmp_path, [nan, nan])
    with pytest.raises(ValueError, match="in all of the first 3 rounds"):
        boost(Rounds(10, 2, EarlyStopping(3)), tmp_path, [nan] * 3)


def test_metrics_that_are_better_when_they_are_higher():
    names = ("valid-auc", "valid-ndcg@5-", "my-valid-map-", "valid-pre@2", "valid-error@0.7", "valid-logloss")
    assert [_higher_is_better(name) for name in names] == [True, True, True, True, False, False]


def test_early_stopping_without_a_metric_is_an_error(alone):
    with pytest.raises(ValueError, match="no metric is measured"):
        Rounds(10, 0, EarlyStopping(3)).end_round([])


def test_a_model_that_goes_on_without_early_stopping_forgets_its_best_round(alone):
    train = xgboost.DMatrix(ROWS, LABELS)
    model = xgboost.train({"nthread": 1}, train, 2, verbose_eval=False)
    model.set_attr(best_iteration="0", best_score="0.5")
    more = xgboost.train({"nthread": 1}, train, 1, xgb_model=model, callbacks=[ReportRounds(Rounds(3, 2))])
    assert more.attributes() == {}
