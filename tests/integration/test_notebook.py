"""A notebook: what its cells show, and what interrupting the kernel does. All tests share one kernel, and go in order."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.integration.conftest import joining_environment
from tests.longest import LONGEST_S

Cell = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    """Runs a cell, and gives its outputs. Once ``interrupt_when`` exists, the kernel is interrupted, as by the button."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook()
    client = NotebookClient(notebook, timeout=int(LONGEST_S), kernel_name="python3", allow_errors=True)
    environment = {**joining_environment(), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    with client.setup_kernel(env=environment, cwd=str(folder)):

        def run(source: str, interrupt_when: Path | None = None) -> list[Any]:
            notebook.cells.append(nbformat.v4.new_code_cell(textwrap.dedent(source)))
            if interrupt_when is not None:
                kernel = client.km.provisioner.pid
                threading.Thread(target=_interrupt, args=(kernel, interrupt_when), daemon=True).start()
            return client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1).outputs

        yield run


def _interrupt(kernel: int, when: Path) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not when.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(kernel, signal.SIGINT)


def text_of(outputs: list[Any], name: str) -> str:
    return "".join(each["text"] for each in outputs if each.output_type == "stream" and each.name == name)


def shown(outputs: list[Any], kind: str) -> list[str]:
    """What cells display, of one kind, as it is in the end."""
    return [each["data"][kind] for each in outputs if "data" in each and kind in each["data"]]


def errors(outputs: list[Any]) -> list[str]:
    return [f"{each.ename}: {each.evalue}" for each in outputs if each.output_type == "error"]


def test_a_training_moves_one_line_and_its_result_is_a_page(cell: Cell):
    outputs = cell(
        """
        from pathlib import Path
        from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, session, tune

        def train_func(config):
            import time
            for epoch in range(config["num_epochs"]):
                session.report({"loss": config.get("lr", 1) / (epoch + 1)})
                time.sleep(0.05)
            print("that was it")

        trainer = DataParallelTrainer(train_func, train_loop_config={"num_epochs": 30})
        result = trainer.fit()
        """
    )
    assert errors(outputs) == []
    (line,) = shown(outputs, "text/plain")
    assert "iteration 30/30  loss=0.03333" in line, "the last state of the one line that moved"
    assert "iteration" not in text_of(outputs, "stderr") + text_of(outputs, "stdout")
    assert text_of(outputs, "stdout").splitlines() == ["[rank 0] that was it"]

    (page,) = shown(cell("result"), "text/html")
    assert "<td>loss</td><td>0.03333 (30)</td>" in page
    assert "<svg" in page
    assert page.count("<a href=") == 2
    outputs = cell("result.plot();")
    assert errors(outputs) == []
    assert shown(outputs, "image/png")


def test_a_sweep_moves_one_line_and_its_results_are_a_page(cell: Cell):
    outputs = cell(
        """
        space = {"train_loop_config": {"num_epochs": 2, "lr": tune.grid_search([2, 1])}}
        config = tune.TuneConfig(metric="loss", mode="min")
        results = tune.Tuner(trainer, param_space=space, tune_config=config).fit()
        """
    )
    assert errors(outputs) == []
    assert [line for line in shown(outputs, "text/plain") if "2/2 trials, 0 running" in line]
    assert "TERMINATED" not in text_of(outputs, "stderr"), "a line for each trial"
    (page,) = shown(cell("results"), "text/html")
    assert page.index("<td>Finished</td><td>0.5</td><td>1</td>") < page.index("<td>Finished</td><td>1</td><td>2</td>")
    outputs = cell("results.plot();")
    assert errors(outputs) == []
    assert shown(outputs, "image/png")


def test_interrupting_the_kernel_cancels_the_training_and_the_next_cell_works(
    cell: Cell, tmp_path: Path, registry: Any
):
    started = tmp_path / "started"
    outputs = cell(
        f"""
        def never_ends():
            import time
            step = 0
            while True:
                step += 1
                session.report({{"step": step}})
                if step == 3:
                    Path({str(started)!r}).touch()
                time.sleep(0.05)

        DataParallelTrainer(never_ends, run_config=RunConfig(name="interrupted in a notebook")).fit()
        """,
        interrupt_when=started,
    )
    assert errors(outputs) == ["KeyboardInterrupt: "]
    (run,) = registry.search_runs(
        [each.experiment_id for each in registry.search_experiments()],
        "attributes.run_name = 'interrupted in a notebook'",
    )
    assert run.info.status == "KILLED"

    outputs = cell("print(trainer.fit().metrics['training_iteration'])")
    assert errors(outputs) == []
    assert text_of(outputs, "stdout").splitlines()[-1] == "30"
