"""A worker of a local Ray gets the arguments, the variables and the folder that it would get from Ray's own script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ray

from trainlib._execution import become_worker

RAYS_OWN = Path(ray.__file__).parent / "_private" / "workers" / "setup_worker.py"
WORKER = """
import gc, json, os, ray, sys
assert gc.isenabled()
assert __name__ == "__main__"
names = ("PATH_OF_DATA", "OF_ANOTHER", "OF_NOBODY")
print(json.dumps([sys.argv, sys.path, os.getcwd(), {name: os.environ.get(name) for name in names}]))
"""


def told_to_worker(script: str | Path, folder: Path, context: dict[str, object], *flags: str, **env: str) -> object:
    worker = folder / "a worker.py"  # Ray takes paths with spaces
    worker.write_text(WORKER)
    started = subprocess.run(
        [
            *(sys.executable, str(script), *flags, str(worker), "--temp-dir=/tmp/a b", "--language=PYTHON"),
            *(f"--serialized-runtime-env-context={json.dumps(context)}", "--startup-token=3"),
        ],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "DATA": "/data", "HOME": str(folder), **env},
        cwd=folder,
    )
    return json.loads(started.stdout)


@pytest.mark.parametrize(
    ("context", "flags"),
    [
        (
            {"env_vars": {"PATH_OF_DATA": "${DATA}/digits", "OF_ANOTHER": "$PATH_OF_DATA", "OF_NOBODY": "a${NOBODY}b"}},
            [],
        ),
        ({"command_prefix": ["cd", "/", "&&"], "py_executable": f"{sys.executable} -B"}, ["-s"]),
    ],
    ids=["variables", "another folder, another Python, and its flags"],
)
def test_a_worker_is_started_as_ray_starts_it(tmp_path, context, flags):
    ours = told_to_worker(become_worker.__file__, tmp_path, context, *flags)
    assert ours == told_to_worker(RAYS_OWN, tmp_path, context, *flags)


def test_a_path_that_leaves_out_the_folder_of_scripts_stays_as_it_is(tmp_path):
    given = {"PYTHONSAFEPATH": "1", "PYTHONPATH": "/project"}
    assert told_to_worker(become_worker.__file__, tmp_path, {}, **given) == told_to_worker(
        RAYS_OWN, tmp_path, {}, **given
    )


@pytest.mark.parametrize("variables", [{}, {"OF_ANOTHER": "1"}], ids=["nothing", "variables"])
def test_ray_is_imported_once(tmp_path, variables):
    (tmp_path / "ray.py").write_text("from pathlib import Path\nprint(file=Path(__file__).with_name('seen').open('a'))")
    told_to_worker(become_worker.__file__, tmp_path, {"env_vars": variables}, PYTHONPATH=str(tmp_path))
    assert (tmp_path / "seen").read_text() == "\n"
