"""The pipeline: its steps, its cache, and the command that runs it."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from trainlib.data.tables import DIGITS, prepare, version_of
from trainlib.registry.models import register, select


def test_the_demo_ends_with_a_registered_model(driver, registry):
    """Twice: the second is not confused by the first, and its equal score does not move the alias."""
    run = "import sys; from trainlib.cli import main; sys.exit(main(['demo', '--epochs', '4']))"
    for version in ("1", "2"):
        process = driver(run)
        assert process.wait() == 0, process.output
        assert "4/4 registering it as digits" in process.output
        assert f"digits version {version}, alias 'best'" in process.output
        assert "Open both UIs    trainlib up" in process.output
        assert "Traceback" not in process.output
        assert "WARNING" not in process.output
    assert registry.get_model_version_by_alias("digits", "best").version == 1
    versions = registry.search_model_versions("name = 'digits'")
    assert len({version.run_id for version in versions}) == 2
    runs = registry.search_runs([registry.get_experiment_by_name("digits").experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    data = list(Path(os.environ["TRAINLIB_HOME"], "data").iterdir())
    assert len(data) == 1, "the second run found the first one's prepared data"


def test_prepared_data_is_scaled_by_its_training_part(tmp_path):
    prepared = prepare(DIGITS, target="target", validation_size=0.25, seed=1, folder=tmp_path / "digits")
    train, validation = pd.read_parquet(prepared.train), pd.read_parquet(prepared.validation)
    assert len(train) == prepared.train_rows == 1348
    assert len(validation) == prepared.validation_rows == 449
    features = train[prepared.features]
    assert features.mean().abs().max() < 1e-5
    assert abs(validation[prepared.features].mean()).max() > 1e-3, (
        "validation is scaled by training's mean, not its own"
    )
    assert json.loads((tmp_path / "digits" / "manifest.json").read_text())["digest"] == prepared.digest
    again = prepare(DIGITS, target="target", validation_size=0.25, seed=1, folder=tmp_path / "again")
    assert again.digest == prepared.digest


def test_bad_data_is_named(tmp_path):
    csv = tmp_path / "table.csv"
    csv.write_text("a,b,label\n1,x,0\n2,y,1\n")
    settings = {"validation_size": 0.5, "seed": 0, "folder": tmp_path / "out"}
    with pytest.raises(ValueError, match="has no column 'target'; it has: a, b, label"):
        prepare(str(csv), target="target", **settings)
    with pytest.raises(ValueError, match=r"column 'b' of .* features have to be numbers"):
        prepare(str(csv), target="label", **settings)
    with pytest.raises(FileNotFoundError, match="there is no data at"):
        version_of(str(tmp_path / "nothing.csv"))
    with pytest.raises(ValueError, match="cannot tell the format"):
        prepare(str(tmp_path / "table.xls"), target="label", **settings)
    assert not (tmp_path / "out").exists()


def test_a_changed_source_is_another_version(tmp_path):
    csv = tmp_path / "table.csv"
    csv.write_text("a,label\n1,0\n")
    before = version_of(str(csv))
    csv.write_text("a,label\n1,0\n2,1\n")
    assert version_of(str(csv)) != before


def test_only_a_better_version_takes_the_alias(registry):
    from trainlib import Checkpoint, ScalingConfig, session
    from trainlib.torch import TorchTrainer

    def train_func(config):
        for score in (0.5, 0.9, 0.7):
            session.report({"accuracy": score}, checkpoint=Checkpoint.from_dict({"score": score}))

    result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
    best = select([result.run_id], "accuracy", "max")
    assert (best.score, best.iteration) == (0.9, 2)
    assert Checkpoint(best.location).to_dict()["score"] == 0.9
    assert select([result.run_id], "accuracy", "min").score == 0.5
    assert register(best, "alias-test").promoted
    worse = replace(best, score=0.8)
    assert not register(worse, "alias-test").promoted
    assert register(replace(best, score=0.95), "alias-test").promoted
    assert registry.get_model_version_by_alias("alias-test", "best").version == 3
    with pytest.raises(LookupError, match="number for 'recall'; their metrics are: accuracy"):
        select([result.run_id], "recall", "max")
    with pytest.raises(ValueError, match="mode is 'best'"):
        select([result.run_id], "accuracy", "best")


def test_the_command_line_helps_and_complains(capfd):
    from trainlib.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "demo" in capfd.readouterr().out
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["up", "--mlflow-port", str(port), "--prefect-port", "0"]) == 1
    assert f"port {port} is taken" in capfd.readouterr().err
