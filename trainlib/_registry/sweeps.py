"""Writing a sweep: a parent run, and a child run for each trial."""

from __future__ import annotations

from collections.abc import Mapping

from trainlib._registry import tags as names
from trainlib._registry.provenance import source_tags
from trainlib._registry.recorded_sweep import RecordedTrial
from trainlib._registry.run import RegisteredRun, continue_run, create_run
from trainlib._registry.trial_points import point_tags
from trainlib.config import CheckpointConfig

__all__ = ["TrialRegistry"]


class TrialRegistry:
    """Creates, continues and ends the runs of a sweep's trials."""

    def __init__(self, parent: RegisteredRun, *, tags: Mapping[str, str]) -> None:
        """``tags`` are set on the run of each trial."""
        self._client = parent.client
        self._lease = parent.lease
        self._sweep_id = parent.run_id
        self._place = parent.recorded.trials_place
        self._tags = {**source_tags(), names.MLFLOW_PARENT: parent.run_id, **tags}

    def create(
        self, number: int, name: str, point: str, config: CheckpointConfig, tags: Mapping[str, str]
    ) -> RegisteredRun:
        """The run of a new trial. Everything that another process has to know about the trial is created with it."""
        about = {**tags, names.TRIAL_NUMBER: str(number), **point_tags(point)}
        run = create_run(self._client, self._place, config, name=name, tags={**self._tags, **about})
        return self._as_trial(run, number)

    def go_on(self, trial: RecordedTrial, config: CheckpointConfig) -> RegisteredRun:
        """The run of a trial that an earlier process began."""
        lost = "the process of the sweep ended"
        run = continue_run(self._client, trial.run, self._place, config, tags={}, lost_message=lost)
        return self._as_trial(run, trial.number)

    def _as_trial(self, run: RegisteredRun, number: int) -> RegisteredRun:
        run.lease, run.sweep_id, run.trial_number = self._lease, self._sweep_id, number
        return run

    def end(self, trial: RecordedTrial, status: str) -> None:
        """End the run of a trial that does not go on."""
        self._client.set_terminated(trial.run.info.run_id, status)
