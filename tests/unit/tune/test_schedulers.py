"""Schedulers decide by the results that they have seen, and by nothing else."""

from __future__ import annotations

import pytest

from trainlib import tune
from trainlib.tune.schedulers import (
    ASHAScheduler,
    FIFOScheduler,
    HyperBandScheduler,
    MedianStoppingRule,
    PopulationBasedTraining,
    Verdict,
)


def run(scheduler, curves):
    """How far each trial gets when they run one after the other."""
    reached = []
    for trial, curve in enumerate(curves):
        iteration = 0
        for iteration, value in enumerate(curve, start=1):
            if scheduler.on_result(trial, {"score": value, "training_iteration": iteration}) is not Verdict.CONTINUE:
                break
        scheduler.on_end(trial)
        reached.append(iteration)
    return reached


def flat(value, length=16):
    return [value] * length


def test_fifo_stops_no_trial():
    assert run(FIFOScheduler(), [flat(1), flat(0)]) == [16, 16]


def test_asha_continues_the_best_and_stops_the_others_at_their_rungs():
    asha = ASHAScheduler(metric="score", mode="max", max_t=16, grace_period=1, reduction_factor=4)
    late_bloomer = [*flat(3, 3), *flat(0, 13)]
    assert run(asha, [flat(3), flat(1), flat(2), late_bloomer, flat(9)]) == [16, 1, 1, 4, 16]


def test_asha_minimises_and_may_run_past_max_t():
    asha = ASHAScheduler(metric="score", mode="min", max_t=4, reduction_factor=2, stop_last_trials=False)
    assert run(asha, [flat(1, 6), flat(2, 6), flat(0, 6)]) == [6, 1, 6]


def test_a_nan_score_does_not_survive_a_rung():
    asha = ASHAScheduler(metric="score", mode="max", max_t=16, reduction_factor=2)
    assert run(asha, [flat(1), flat(float("nan"))]) == [16, 1]


def test_hyperband_assigns_trials_to_brackets_that_stop_early_or_late():
    band = HyperBandScheduler(metric="score", mode="max", max_t=9, reduction_factor=3)
    assert run(band, [flat(9, 9), flat(9, 9), flat(1, 9), flat(1, 9)]) == [9, 9, 1, 3]


def test_the_median_rule_waits_for_enough_trials_and_enough_time():
    rule = MedianStoppingRule("training_iteration", "score", "max", grace_period=2, min_samples_required=2)
    assert run(rule, [flat(5, 4), flat(1, 4), flat(0, 4), flat(6, 4)]) == [4, 4, 2, 4]


def test_a_population_takes_turns_if_not_all_fit_and_copies_the_best():
    population = PopulationBasedTraining(
        time_attr="training_iteration",
        metric="score",
        mode="max",
        perturbation_interval=2,
        hyperparam_mutations={"lr": tune.uniform(0.1, 1.0), "model": {"width": [8, 16, 32]}},
        resample_probability=0.0,
        seed=0,
    )
    for trial, score in enumerate([1.0, 2.0, 3.0, 4.0]):
        assert (
            population.on_result(trial, {"score": score, "training_iteration": 1}, others_wait=True) is Verdict.CONTINUE
        )
        assert population.on_result(trial, {"score": score, "training_iteration": 2}, others_wait=True) is Verdict.PAUSE
    assert population.better_than(0) == 3
    assert population.better_than(2) is None
    assert population.first_of([1, 2, 9]) == 9, "the one that has come least far"
    changed = population.explore({("lr",): 0.5, ("model", "width"): 16}.__getitem__)
    assert changed[("lr",)] in (0.4, 0.6)
    assert changed[("model", "width")] in (8, 32)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ASHAScheduler(max_t=1, grace_period=2), "grace_period is 2, max_t 1"),
        (lambda: ASHAScheduler(reduction_factor=1), "reduction_factor is 1"),
        (lambda: ASHAScheduler(mode="minimum"), "mode is 'minimum'"),
        (lambda: MedianStoppingRule(hard_stop=False), "hard_stop=False is not supported"),
        (lambda: PopulationBasedTraining(), "there is nothing to mutate"),
        (lambda: PopulationBasedTraining(hyperparam_mutations={"lr": 3}), r"hyperparam_mutations\['lr'\] is 3"),
        (lambda: PopulationBasedTraining(hyperparam_mutations={"a": [1]}, quantile_fraction=0.7), "between 0 and 0.5"),
    ],
)
def test_schedulers_that_make_no_sense(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_metric_set_twice_has_to_be_the_same():
    with pytest.raises(ValueError, match="has metric='loss', but TuneConfig has metric='accuracy'"):
        tune.TuneConfig(metric="accuracy", mode="max", scheduler=ASHAScheduler(metric="loss")).make_scheduler()


def test_a_time_attr_that_is_not_reported():
    asha = ASHAScheduler(time_attr="epoch", metric="score", mode="max")
    with pytest.raises(ValueError, match="has time_attr='epoch', but the training function does not report it"):
        asha.on_result(0, {"score": 1, "training_iteration": 1})


def test_a_trial_that_reaches_the_end_was_not_stopped():
    asha = ASHAScheduler(metric="score", mode="max", max_t=2, reduction_factor=2)
    results = [{"score": 1, "training_iteration": iteration} for iteration in (1, 2)]
    assert [asha.on_result(0, result) for result in results] == [Verdict.CONTINUE, Verdict.CONTINUE]
    assert [asha.is_complete(result) for result in results] == [False, True]


def test_the_median_rule_stops_a_trial_with_nan_scores():
    rule = MedianStoppingRule("training_iteration", "score", "max", grace_period=1, min_samples_required=2)
    assert run(rule, [flat(1, 3), flat(2, 3), flat(float("nan"), 3), flat(1.6, 3)]) == [3, 3, 1, 3]


@pytest.mark.parametrize("order", [(8, 0, 1), (8, 1, 0)])
def test_the_bracket_of_a_trial_does_not_depend_on_the_order_of_reports(order):
    """After a restart, trials may report in another order."""
    hyperband = HyperBandScheduler(metric="acc", mode="max", max_t=81, reduction_factor=3)
    verdicts = {t: hyperband.on_result(t, {"acc": float(t == 8), "training_iteration": 1}) for t in order}
    assert verdicts == {8: Verdict.CONTINUE, 0: Verdict.STOP, 1: Verdict.CONTINUE}


def test_the_median_rule_counts_what_a_retry_repeats_once():
    rule = MedianStoppingRule("training_iteration", "score", "max", grace_period=3, min_samples_required=1)
    for iteration, score in ((1, 0.0), (2, 9.0), (3, 9.0), (2, 0.0), (3, 0.0)):  # it was resumed after the first
        rule.on_result(0, {"training_iteration": iteration, "score": score})
    assert rule.on_result(1, {"training_iteration": 3, "score": 1.0}) is Verdict.CONTINUE
