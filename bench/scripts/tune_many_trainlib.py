"""Many trials of a trivial function under trainlib: seconds per trial, the slowest answer of Prefect's server, and memory growth."""

import threading
import time
import urllib.request

import psutil

from bench.scripts.side import finish
from bench.scripts.sweeps import MANY, trivial
from trainlib import RunConfig, tune


def train_func(config):
    return {"loss": trivial(config)}


slowest = 0.0
ended = threading.Event()


def ask_prefect() -> None:
    """Send a request to the server every second, as a browser would."""
    global slowest
    from prefect.settings import PREFECT_API_URL

    while not ended.wait(1.0):
        if url := PREFECT_API_URL.value():
            asked = time.monotonic()
            request = urllib.request.Request(
                f"{url}/flow_runs/filter", data=b'{"limit": 5}', headers={"Content-Type": "application/json"}
            )
            try:
                urllib.request.urlopen(request, timeout=60).read()
            except OSError:
                continue  # it is not running yet
            slowest = max(slowest, time.monotonic() - asked)


def tune_with(trials: int) -> float:
    started = time.time()
    results = tune.Tuner(
        train_func,
        param_space={"x": tune.uniform(-1, 1)},
        tune_config=tune.TuneConfig(num_samples=trials, metric="loss", mode="min"),
        run_config=RunConfig(verbose=0),
    ).fit()
    if len(results) != trials or results.num_errors:
        raise RuntimeError(f"{len(results)} trials, errors: {results.errors[:3]}")
    return time.time() - started


memory = psutil.Process().memory_info
tune_with(20)
before = memory().rss
watcher = threading.Thread(target=ask_prefect, daemon=True)
watcher.start()
seconds = tune_with(MANY)
ended.set()
watcher.join()
grown = (memory().rss - before) / 2**20
finish(trial_s=seconds / MANY, sweep_s=seconds, slowest_answer_s=slowest, grown_mib=grown)
