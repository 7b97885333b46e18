"""What a sweep records: its own run, the runs of its trials, its best value, and the time it has taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime

from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.notes import Section, escaped
from trainlib._registry.opening import open_run
from trainlib._registry.recorded_sweep import RecordedSweep, RecordedTrial
from trainlib._registry.run import RegisteredRun
from trainlib._registry.run_file import write_run_file
from trainlib._registry.statuses import status_after
from trainlib._registry.sweeps import TrialRegistry
from trainlib._registry.tags import FRAMEWORK, MLFLOW_NOTE, SWEEP_SPACE, SWEEP_SPENT, prefect_only
from trainlib._registry.trial_points import point_tags
from trainlib._registry.urls import trials_link
from trainlib._registry.views import trials_view
from trainlib._training.naming import sweep_name
from trainlib._training.opening import with_mlflow_callback
from trainlib.callbacks._mlflow import store_of
from trainlib.tune._plan import SweepPlan
from trainlib.tune._point import Point
from trainlib.tune._trial import SweepTrial
from trainlib.tune.schedulers import TrialScheduler

__all__ = ["SweepRecord"]

_NOTE_S = 5.0


class SweepRecord:
    """A sweep in the registry: a parent run, and a child run for each trial. It decides nothing."""

    def __init__(self, run: RegisteredRun, tags: Mapping[str, str]) -> None:
        self.run = run
        self._trials = TrialRegistry(run, tags=tags)
        self._best: float | None = None
        self._best_step = run.iterations_before
        self._spent_before = 0.0
        self._started = time.monotonic()
        self._noted_s = 0.0

    @classmethod
    def open(
        cls,
        plan: SweepPlan,
        *,
        flow_run_id: str | None,
        tags: Mapping[str, str],
        say: Callable[[str], None] = lambda text: None,
    ) -> SweepRecord:
        """Find or create the sweep's run; ``say`` shows which of the two.

        Raises:
            ValueError: the sweep that was asked for was begun with another param_space.
        """
        config, extra = with_mlflow_callback(plan.run_config)
        run = open_run(
            config,
            store=store_of(config),
            default_name=sweep_name(plan.trainable.trained, plan.space.domains, datetime.now()),
            kind="sweep",
            run=plan.restored_run,
            flow_run_id=flow_run_id,
            tags={**extra, **tags},
            fingerprint=plan.fingerprint,
            require=plan.require_same_space,
            say=say,
        )
        note = "\n\n".join([*filter(None, [tags.get(MLFLOW_NOTE)]), _link_to_others(run)])
        return cls(run, prefect_only(tags) | extra | {MLFLOW_NOTE: note})

    def describe(self, plan: SweepPlan, scheduler: TrialScheduler) -> bool:
        """Keep what the sweep is about to do. Gives whether an earlier process had done so, and begun trials."""
        before = self.run.client.get_run(self.run.run_id).data.tags if self.run.continued else {}
        self._spent_before = float(before.get(SWEEP_SPENT, "0"))
        self._share_view(plan)
        write_run_file(self.run, "sweep", "RUNNING")
        self.run.save_trainer(plan.settings)  # also of a restored one: its settings may be other ones than before
        if SWEEP_SPACE in before:
            return True
        self.run.continued = False  # its process was killed before it could say what it was about to do
        config, search = plan.config, plan.config.search_alg
        params = {
            "tuned": plan.trainable.name,
            "search_alg": search if isinstance(search, str) else type(search).__name__,
            "scheduler": type(scheduler).__name__,
            "metric": plan.metric,
            "mode": plan.mode,
            "num_samples": config.num_samples,
            "seed": config.seed,
            **({"scheduler_seed": seed} if (seed := getattr(scheduler, "seed", None)) is not None else {}),
            "trials": plan.total,
        }
        self.run.describe(params, {SWEEP_SPACE: plan.space_digest})  # last: a sweep that has it can be restored
        return False

    def _share_view(self, plan: SweepPlan) -> None:
        """Let a link open MLflow's table of runs with the trials of this sweep, and the columns that matter."""
        view = trials_view(self.run.run_id, list(plan.space.domains), metric=plan.metric, mode=plan.mode)
        for tag, value in view.items():
            self.run.patience(self.run.client.set_experiment_tag, self.run.experiment_id, tag, value)

    # -- trials ---------------------------------------------------------------------------------------

    def open_trial(self, trial: SweepTrial) -> RegisteredRun:
        """The run of a trial that starts: a new one, or that of an earlier process."""
        config = trial.trainer.run_config.checkpoint_config
        if trial.recorded is not None:
            return self._trials.go_on(trial.recorded, config)
        tags = {FRAMEWORK: trial.trainer.backend_config.framework}
        return self._trials.create(trial.number, trial.name, trial.point.dumps(), config, tags)

    def fail_trial(self, run: RegisteredRun, error: Exception, outcome: Outcome) -> None:
        """End the run of a trial that could not be started."""
        run.record(AttemptRecord(len(run.attempts) + 1, outcome, None, message=str(error)))
        run.close("FAILED")

    def end_trial(self, recorded: RecordedTrial, status: str) -> None:
        """End the run of a trial of an earlier process that did not have its turn again."""
        self._trials.end(recorded, status)

    def change_point(self, run: RegisteredRun, point: Point) -> None:
        """A trial goes on with another point; returns when that is written."""
        run.metrics.note(tags=point_tags(point.dumps()))
        run.metrics.flush()  # before the weights come: weights without their params would be another trial's

    @property
    def recorded(self) -> RecordedSweep:
        """What earlier processes did."""
        return RecordedSweep(self.run.client, self.run.recorded)

    # -- the sweep itself -----------------------------------------------------------------------------

    @property
    def spent_s(self) -> float:
        """Seconds that the sweep has run, in all processes."""
        return self._spent_before + time.monotonic() - self._started

    def note_time(self) -> None:
        """Keep how long the sweep has run, now and then, for a process that continues it."""
        if self.spent_s - self._noted_s >= _NOTE_S:
            self._noted_s = self.spent_s
            self.run.client.set_tag(self.run.run_id, SWEEP_SPENT, f"{self._noted_s:.1f}")

    def note_best(self, metric: str | None, score: float | None, ended: int) -> None:
        """Draw the best value by now, where it has changed; ``ended`` is how many trials are over."""
        if score is not None and score != self._best:
            self._best = score
            self._best_step = max(self._best_step + 1, ended)
            self.run.metrics.write(self._best_step, {f"best_{metric}": score}, time.time())

    def close(self, error: BaseException | None, trials: Section) -> None:
        """End the sweep's run; ``trials`` is what its description says of them."""
        write_run_file(self.run, "sweep", status_after(error))
        self.run.close(status_after(error), [trials])


def _link_to_others(run: RegisteredRun) -> str:
    """What the description of a trial says: where the sweep's other trials are."""
    return f"[All trials of {escaped(run.name)}]({trials_link(run.experiment_id, run.run_id)})"
