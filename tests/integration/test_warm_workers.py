"""Scripts that join a platform: its workers stay warm from script to script, and nothing of one script reaches the next."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.platform_ray import PlatformRay, Scripts, said, until
from trainlib.flows import _embedded as embedded

# What the training function finds in its worker, before it leaves all of that there itself.
TRAINING = """
import sys, time

from trainlib import RunConfig, ScalingConfig, session
from trainlib.torch import TorchTrainer

def loop():
    began = time.time()
    import __main__, json, logging, os, socket, sys
    import torch
    import helper
    from parts import inner

    torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), 0.1)
    found = {
        "pid": os.getpid(), "began": began, "helper": helper.VALUE, "cwd": os.environ["TRAINLIB_ORIG_WORKING_DIR"], "setting": os.environ.get("SETTING"),
        "left": [helper.SEEN, inner.SEEN, os.environ.get("LEFT"), os.environ.get("MLFLOW_TRACKING_TOKEN"), "/left" in sys.path,
                 logging.getLogger("mine").handlers != [], hasattr(__main__, "left"), socket.getdefaulttimeout(), "made" in sys.modules],
    }
    with open(f"{found['cwd']}/found_{session.get_world_rank()}.json", "w") as file:
        json.dump(found, file)
    helper.SEEN = inner.SEEN = os.environ["LEFT"] = os.environ["MLFLOW_TRACKING_TOKEN"] = "left"
    sys.path.insert(0, "/left")
    sys.modules["made"] = type(sys)("made")
    logging.getLogger("mine").addHandler(logging.StreamHandler())
    __main__.left = 1
    socket.setdefaulttimeout(1.0)
    os.chdir("/")
    session.report({"step": 1})

TorchTrainer(loop, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(verbose=0)).fit()
print("{}")
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory) -> Iterator[PlatformRay]:
    platform = PlatformRay(tmp_path_factory.mktemp("platform") / "home")
    embedded.start()  # the session's Prefect server, while Ray starts
    embedded.wait()
    platform.wait_until_up()
    yield platform
    platform.end()


@pytest.fixture(scope="module")
def second_platform(platform, tmp_path_factory) -> Iterator[PlatformRay]:
    """Starts while the first one is used."""
    second = PlatformRay(tmp_path_factory.mktemp("second") / "home")
    yield second
    second.end()


@pytest.fixture
def scripts(platform, tmp_path) -> Iterator[Scripts]:
    scripts = Scripts(platform, tmp_path)
    yield scripts
    scripts.kill_all()


@pytest.mark.usefixtures("second_platform")
def test_the_second_script_finds_the_workers_of_the_first_and_nothing_else(scripts, tmp_path):
    project = tmp_path / "project"
    (project / "parts").mkdir(parents=True)
    (project / "parts" / "inner.py").write_text("SEEN = None\n")
    found = []
    for value in ("1", "2"):
        (project / "helper.py").write_text(f"VALUE = {value}\nSEEN = None\n")
        began = time.time()
        scripts.run(TRAINING, prelude="", SETTING="same")
        found.append([json.loads((project / f"found_{rank}.json").read_text()) for rank in (0, 1)])
        print(f"first line after {found[-1][0]['began'] - began:.2f} s, all after {time.time() - began:.2f} s")
    first, second = found
    assert [one["pid"] for one in first] == [one["pid"] for one in second], "the workers have stayed"
    assert [one["helper"] for one in first + second] == [1, 1, 2, 2], "an edited module is read again"
    for one in first + second:
        assert one["cwd"] == str(project)
        assert one["setting"] == "same", "workers have the environment of the script"
        assert one["left"] == [None, None, None, None, False, False, False, None, False]


CHECK_OUT = """
    worker = pool.checkout(kind)
    def look():
        import model, os
        return {"pid": os.getpid(), "model": model.NAME, "secret": os.environ.get("SECRET")}
    say(**run(worker, look))
    sys.stdin.readline()
    pool.give_back(kind, [worker])
    say(again=run(pool.checkout(kind), look)["pid"])
"""


WITH_RUNTIME_ENV = """
    import os
    asked = {"env_vars": {"HF_TOKEN": "hf_hidden_text", "MODE": "fast"}, "working_dir": os.environ["CODE"]}
    kind = kind_of(ScalingConfig(num_workers=1, runtime_env=asked), BackendConfig(), ray.get_runtime_context().get_node_id())
    def look():
        import model, os
        return {"model": model.NAME, "token": os.environ.get("HF_TOKEN"), "mode": os.environ.get("MODE")}
    say(**run(pool.checkout(kind), look), logs=ray._private.worker._global_node.get_logs_dir_path())
"""


def test_a_runtime_env_reaches_the_workers_of_a_platform_and_its_secrets_no_log(scripts, tmp_path):
    for name in ("script", "code"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(f"NAME = {name!r}")
    script = scripts.start(WITH_RUNTIME_ENV, folder="script", CODE=str(tmp_path / "code"))
    found = said(script)
    logs = [log for log in Path(found.pop("logs")).rglob("*") if log.is_file()]
    assert found == {"model": "code", "token": "hf_hidden_text", "mode": "fast"}
    assert logs
    assert [log for log in logs if b"hf_hidden_text" in log.read_bytes()] == []


def test_two_scripts_at_once_have_their_own_workers_modules_and_secrets(scripts, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(f"NAME = {name!r}")
    one = scripts.start(CHECK_OUT, folder="one", SECRET="of one")
    two = scripts.start(CHECK_OUT, folder="two")
    first, second = said(one), said(two)
    assert (first["model"], first["secret"]) == ("one", "of one")
    assert (second["model"], second["secret"]) == ("two", None)
    assert first["pid"] != second["pid"]
    for process, before in ((one, first), (two, second)):
        output, _ = process.communicate("\n", timeout=30)
        assert json.loads(output) == {"again": before["pid"]}, "what it gives back, it finds again"
    # Both have ended with a worker checked out.
    until(lambda: not any(map(_is_alive, (first["pid"], second["pid"]))), timeout=5)


TRAIN_ON = """
    worker = pool.checkout(kind)
    def train_on():
        import os, threading, time
        def beat():
            while True:
                open("beat", "w").close()
                time.sleep(0.05)
        threading.Thread(target=beat, name="beat", daemon=True).start()
        return os.getpid()
    from ray.util.placement_group import placement_group
    group = placement_group([{"CPU": 1}])
    ray.get(group.ready())
    say(pid=run(worker, train_on), stacks=[thread.name for thread in ray.get(worker.stacks.remote()).threads])
    time.sleep(600)
"""


def test_a_script_that_is_killed_takes_its_workers_and_its_room_along(scripts):
    process = scripts.start(TRAIN_ON)
    told = said(process)
    worker = told["pid"]
    assert _is_alive(worker)
    assert "beat" in told["stacks"], "what its workers are doing can be asked"
    process.kill()
    print(f"its worker ended after {until(lambda: not _is_alive(worker), timeout=5):.2f} s")
    found = scripts.run(
        """
        from ray.util import placement_group_table
        deadline = time.monotonic() + 5
        while (free := ray.available_resources()["CPU"]) < ray.cluster_resources()["CPU"] and time.monotonic() < deadline:
            time.sleep(0.1)
        say(free=free, all=ray.cluster_resources()["CPU"])
        """
    )
    assert found["free"] == found["all"]


LEAVE_BEHIND = """
    def import_a_library():
        import mpmath, os
        return os.getpid()
    def patch_a_function():
        import os, ssl
        ssl._create_default_https_context = ssl._create_unverified_context
        return os.getpid()
    workers = [pool.checkout(kind), pool.checkout(kind)]
    pids = [run(worker, leave) for worker, leave in zip(workers, (import_a_library, patch_a_function))]
    pool.give_back(kind, workers)
    workers = [pool.checkout(kind), pool.checkout(kind)]
    say(pids=pids, again=[run(worker, os.getpid) for worker in workers])
    pool.give_back(kind, workers)
"""


def test_a_worker_with_a_library_or_a_patched_function_of_one_script_is_not_handed_on(scripts):
    first = scripts.run(LEAVE_BEHIND)
    assert sorted(first["again"]) == sorted(first["pids"]), "the script itself finds both again"
    until(lambda: not any(map(_is_alive, first["pids"])), timeout=5)
    assert set(scripts.run(LEAVE_BEHIND)["pids"]).isdisjoint(first["pids"])


def test_data_reach_the_workers(scripts):
    found = scripts.run(
        """
        worker = pool.checkout(kind)
        shard, = ray.data.range(100).map_batches(lambda rows: {"id": rows["id"] * 2}).streaming_split(1)
        say(total=run(worker, lambda: sum(int(batch["id"].sum()) for batch in shard.iter_batches())))
        pool.end(kind, [worker])
        """
    )
    assert found["total"] == 9900


KEEP = """
    from trainlib._execution.pool.idle import Limits
    from trainlib._execution.pool.own_pool import WorkerPool
    pool = WorkerPool(lambda: Limits(idle_s={idle_s}, min_free_memory={min_free}))
    worker = pool.checkout(kind)
    pid = run(worker, os.getpid)
    pool.give_back(kind, [worker])
    time.sleep(0.5)
    is_kept = pool.idle_actors == [worker]
    deadline = time.monotonic() + 10
    while pool.idle_actors and time.monotonic() < deadline:
        time.sleep(0.05)
    say(is_kept=is_kept, is_ended=not pool.idle_actors)
"""


def test_idle_workers_end_in_time_and_when_memory_is_short(scripts):
    both = [scripts.start(KEEP.format(idle_s=idle_s, min_free=free)) for idle_s, free in ((1.0, 0.0), (600.0, 1.1))]
    assert [said(process) for process in both] == [{"is_kept": True, "is_ended": True}] * 2


LOSE_RAY = """
    from trainlib._execution import liveness
    from trainlib.errors import RayLostError
    worker = pool.checkout(kind)
    say(pid=run(worker, os.getpid))
    try:
        while True:
            liveness.require(kind.session)
            time.sleep(0.1)
    except RayLostError as error:
        say(lost=str(error), address=cluster._address())
    os._exit(0)  # Ray would take a quarter of a minute to leave one that is gone
"""


def test_all_ends_with_the_process_that_holds_the_ray_and_scripts_are_told(platform, scripts):
    """The last one: it ends the platform's Ray."""
    process = scripts.start(LOSE_RAY)
    worker = psutil.Process(said(process)["pid"])
    platform.processes.append(worker)
    os.kill(platform.head.pid, signal.SIGKILL)
    platform.head.wait()
    print(f"all ended after {until(lambda: not platform.running(), timeout=10):.2f} s")
    told = said(process)
    assert "the platform's Ray" in told["lost"]
    assert told["address"] == "", "the next training starts a Ray of its own"


def test_it_ends_when_its_input_is_closed(second_platform):
    second_platform.wait_until_up()
    second_platform.end()
    assert second_platform.head.returncode == 0
    until(lambda: not second_platform.running(), timeout=5)


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
