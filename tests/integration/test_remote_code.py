"""The user's code, packages and variables reach workers on machines that do not have them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.integration.conftest import drivers
from tests.integration.foreign_node import DESK, HOST, copy_of_trainlib, foreign_node
from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, TrainingFailedError, session
from trainlib._execution import code, remote_env
from trainlib.config import RuntimeEnv
from trainlib.errors import CheckpointNotFoundError

THERE = ScalingConfig(resources_per_worker={"CPU": 1, DESK: 1})


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A user's project: a script with a module beside it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "helper.py").write_text("def answer():\n    return 42\n")
    (folder / "private.txt").write_text("of no use to a training")
    (folder / "data.bin").write_bytes(bytes(200_000))
    (folder / ".gitignore").write_text("private.txt\n")
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A folder that the project imports from, which is not below the script's."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "library.py").write_text("VALUE = 7\n")
    return folder


@pytest.fixture(scope="module", autouse=True)
def elsewhere(project, library, tmp_path_factory) -> Iterator[None]:
    """A node of the session's Ray that sees neither of them, and starts its workers in a folder of its own."""
    with foreign_node(tmp_path_factory.mktemp("elsewhere"), hidden=[project, library]):
        yield


SCRIPT = """
    import json, os, socket, sys
    import ray
    import helper
    from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, session

    sys.path.append(sys.argv[1])
    import library

    def uses_helper():
        session.report({"answer": helper.answer()})
        files = os.listdir(os.environ["TRAINLIB_ORIG_WORKING_DIR"])
        return {"host": socket.gethostname(), "files": files, "mode": os.environ.get("MODE")}

    def uses_library():
        return library.VALUE

    def fit(function, **runtime_env):
        config = RunConfig(runtime_env=runtime_env, verbose=0)
        there = ScalingConfig(resources_per_worker={"CPU": 1, "desk": 1})
        try:
            return DataParallelTrainer(function, scaling_config=there, run_config=config).fit().returned[0]
        except Exception as error:
            return str(error)

    found = {
        "first": fit(uses_helper, excludes=["*.bin"]),
        "task": ray.get(ray.remote(helper.answer).options(resources={"desk": 0.1}).remote()),
        "excluded": fit(uses_helper, excludes=["helper.py"], env_vars={"MODE": "fast"}),
        "library": fit(uses_library),
        "sent": fit(uses_library, py_modules=[library.__file__]),
    }
    print(json.dumps(found))
"""


def test_a_script_with_modules_beside_it_trains_on_another_machine(project, library):
    with drivers(project) as driver:
        process = driver(SCRIPT, str(library))
        assert process.wait() == 0, process.output
    found = process.last_json()
    assert found["first"]["host"] == HOST
    assert {"helper.py", "script_0.py"} <= set(found["first"]["files"]), "workers start in a copy of the folder"
    assert "private.txt" not in found["first"]["files"], ".gitignore holds"
    assert "data.bin" not in found["first"]["files"], "and so does runtime_env['excludes']"
    assert found["task"] == 42, "tasks of Ray, such as those that read data, have the code as well"
    assert f"Node {HOST}" in found["excluded"]
    assert "no module 'helper'" in found["excluded"]
    assert "excludes" in found["excluded"]
    assert f"this process has it from {library / 'library.py'}" in found["library"]
    assert f"runtime_env={{'py_modules': ['{library / 'library.py'}']}}" in found["library"]
    assert found["sent"] == 7, "what the error proposes works"


def test_a_checkpoint_travels_to_a_machine_that_does_not_see_its_folder(library):
    path = Checkpoint.from_dict({"epoch": 3, "of": Path("here")}).to_directory(library / "checkpoint")

    def read(checkpoint: Checkpoint) -> tuple[bool, dict[str, Any]]:
        return os.path.exists(path), checkpoint.to_dict()

    there = ray.remote(read).options(num_cpus=0, resources={DESK: 0.1})
    assert ray.get(there.remote(Checkpoint.from_directory(path))) == (False, {"epoch": 3, "of": Path("here")})
    with pytest.raises(CheckpointNotFoundError, match="no checkpoint at"):
        ray.get(there.remote(Checkpoint(library / "gone")))


def fit(run_config: RunConfig | None = None, **runtime_env: Any) -> dict[str, Any]:
    """Train on the other machine, in this process."""

    def look_around() -> dict[str, Any]:  # inside, so that it is pickled by value: nobody has this module there
        session.report({"done": 1})
        return {"host": socket.gethostname(), "files": os.listdir(), "mode": os.environ.get("MODE"), "pid": os.getpid()}

    config = run_config or RunConfig(runtime_env=RuntimeEnv(**runtime_env), verbose=0, working_dir_per_rank=False)
    result = DataParallelTrainer(look_around, scaling_config=THERE, run_config=config).fit()
    assert result.returned is not None
    return result.returned[0]


@pytest.fixture
def started_in_project(project, monkeypatch) -> None:
    """As if the project's script had started this process. It is connected to Ray already, as if by ``ray.init()``."""
    monkeypatch.setattr(code, "script_folder", lambda: project)


def test_where_the_user_has_started_ray_each_worker_gets_the_code(started_in_project):
    first, second = fit(env_vars={"MODE": "fast"}), fit(env_vars={"MODE": "slow"})
    assert first["host"] == HOST
    assert "helper.py" in first["files"], "nothing can be sent for the whole job any more"
    assert (first["mode"], second["mode"]) == ("fast", "slow")
    assert first["pid"] != second["pid"], "warm workers of another environment are not used"


def test_a_folder_that_is_too_large_is_refused_by_its_largest_files(started_in_project, monkeypatch):
    monkeypatch.setenv("TRAINLIB_CODE_LIMIT_MIB", "0.1")
    with pytest.raises(TrainingFailedError, match=re.escape("data.bin (0.2 MiB)")) as refused:
        fit()
    assert "runtime_env={'excludes': ['data.bin']}" in str(refused.value)


def test_a_node_without_the_right_trainlib_is_named(started_in_project, tmp_path):
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "trainlib.py").write_text("""raise ModuleNotFoundError("No module named 'trainlib'")""")
    with pytest.raises(TrainingFailedError, match=rf"Node {HOST} .* has no module 'trainlib'. Install trainlib 0"):
        fit(env_vars={"PYTHONPATH": str(tmp_path / "none")})
    with open(copy_of_trainlib(tmp_path / "other") / "__init__.py", "a") as file:
        file.write("\n__version__ = '0.0.9'\n")
    with pytest.raises(TrainingFailedError, match=rf"node {HOST} .* has trainlib 0.0.9, and this process has"):
        fit(env_vars={"PYTHONPATH": str(tmp_path / "other")})


def test_an_environment_that_ray_cannot_set_up_is_a_readable_error():
    with pytest.raises(TrainingFailedError, match=rf"set up on node {HOST} .*'/no/such', which must already exist"):
        fit(working_dir="local:///no/such")


def test_a_disk_that_the_node_does_not_see_is_named_before_the_training_function_runs(project, started_in_project):
    hidden = RunConfig(storage_path=str(project / "kept"), experiment_name="on a disk of our own", verbose=0)
    with pytest.raises(TrainingFailedError, match=rf"node {HOST} .* does not see the folder {project}/kept") as refused:
        fit(hidden)
    assert "storage_path='s3://" in str(refused.value)
    assert refused.value.cause == "user", "no retry would change it"


def test_packages_are_for_pip_on_the_node():
    """Ray first copies the whole virtualenv of the node, which takes minutes here: so it is not tried."""
    asked = RuntimeEnv(pip=["einops==0.8.1"], env_vars={"PIP_NO_INDEX": "1"})
    here = ray.get_runtime_context().get_node_id()
    assert remote_env.for_worker(asked, here) == '{"env_vars": {"PIP_NO_INDEX": "1"}, "pip": ["einops==0.8.1"]}'
    assert remote_env.for_worker(None, here) == "", "this machine has the code"


def test_a_folder_that_ray_job_submit_has_sent_is_used_in_place_of_the_scripts(
    project, started_in_project, monkeypatch
):
    """Ray refuses to join a cluster with a second one."""
    address = ray.get_runtime_context().gcs_address
    asked = RuntimeEnv(excludes=["*.bin"], env_vars={"MODE": "fast"})
    joined = remote_env.for_job(address, asked)
    assert joined is not None
    assert joined.keys() == {"working_dir", "excludes"}, "variables are for the workers of one training"
    assert joined["working_dir"] == str(project)
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", '{"runtime_env": {"working_dir": "gcs://sent.zip"}}')
    assert remote_env.for_job(address, asked) is None
