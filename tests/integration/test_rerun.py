"""Running a training again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, session
from trainlib._cli.exit_codes import ExitCode
from trainlib._registry.environment import Environment
from trainlib._rerun import plan_rerun
from trainlib.cli import main
from trainlib.errors import RunNotFoundError


def train_func(config: dict) -> None:
    rows = [row["x"] for row in session.get_dataset_shard("train").iter_rows()]
    session.report({"sum": config["factor"] * sum(rows) * int(os.environ["UNIT"])})


def test_a_training_is_run_again_or_it_is_said_what_changed(tmp_path, capfd, registry):
    data = tmp_path / "data.csv"
    data.write_text("x\n1\n2\n")
    trainer = DataParallelTrainer(
        train_func,
        train_loop_config={"factor": 3},
        scaling_config=ScalingConfig(num_workers=1),
        datasets={"train": str(data)},
        run_config=RunConfig(name="to be rerun", verbose=0, runtime_env={"env_vars": {"UNIT": "1"}}),
    )
    first = trainer.fit()
    assert main(["rerun", first.run_id]) == 0
    (again,) = registry.search_runs(
        [registry.get_run(first.run_id).info.experiment_id], "attributes.run_name LIKE 'to be rerun · rerun of%'"
    )
    assert capfd.readouterr().out.count("No seed of it is known") == 1
    assert again.data.metrics["sum"] == first.metrics["sum"] == 9
    assert again.info.run_id != first.run_id

    data.write_text("x\n1\n5\n")
    kept = Path(registry.get_run(first.run_id).info.artifact_uri.removeprefix("file://"), "trainer", "environment.json")
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "python": "3.9.1"}))
    capfd.readouterr()
    assert main(["rerun", first.run_id]) == ExitCode.REFUSED
    said = capfd.readouterr()
    assert f"python was 3.9.1, and is {Environment.here().python}" in said.out
    assert "its data differs from what it was" in said.out
    assert "it was not run, since it would not be the same training. Pass --anyway" in said.err
    assert plan_rerun(first.run_id, "another name").trainer.run_config.name == "another name"
    assert main(["rerun", first.run_id, "--name", "all the same", "--anyway"]) == 0
    (anyway,) = registry.search_runs([again.info.experiment_id], "attributes.run_name = 'all the same'")
    assert anyway.data.metrics["sum"] == 18


def seeds_itself(config: dict) -> None:
    import torch

    torch.manual_seed(11 + session.get_world_rank())
    session.report({"drawn": torch.rand(1).item()})


def test_the_seed_that_a_function_sets_by_itself_is_recorded(registry):
    trainer = DataParallelTrainer(
        seeds_itself, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(name="seeded", verbose=0)
    )
    first = trainer.fit()
    assert registry.get_run(first.run_id).data.tags["trainlib.seeds"] == '{"0": 11, "1": 12}'
    plan = plan_rerun(first.run_id)
    assert (plan.changes, plan.remarks) == ([], [])
    assert plan.trainer.fit().metrics["drawn"] == first.metrics["drawn"]


def test_a_run_that_does_not_exist():
    with pytest.raises(RunNotFoundError):
        plan_rerun("no such run")
    assert main(["rerun", "no such run"]) == ExitCode.NOT_FOUND
