"""What a local Ray starts a worker with: ``python become_worker.py <Ray's worker script> <its arguments>``.

Ray's own such script imports all of Ray, only to be replaced by a process that imports it once more. Here the same process goes on as
the worker, which takes a third of the processor time. Whatever is unusual is left to Ray's script.
"""

import gc
import json
import os
import re
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

_CONTEXT = "--serialized-runtime-env-context="
_LANGUAGE = "--language="


def main(given: list[str]) -> None:
    """Let this process be the worker."""
    context = json.loads(_value_of(_CONTEXT, given) or "{}")
    variables = context.get("env_vars")
    has_flags = given[0].startswith("-")  # of Python, before the script
    if has_flags or _value_of(_LANGUAGE, given) != "PYTHON" or not _is_usual(context):
        os.execv(sys.executable, [sys.executable, _script_of_ray(), *given])
    elif variables:  # which may be Python's own: it starts anew
        _set(variables)
        os.execv(sys.executable, [sys.executable, __file__, *(each for each in given if not each.startswith(_CONTEXT))])
    else:
        _run(*(each for each in given if not each.startswith((_CONTEXT, _LANGUAGE))))


def _value_of(option: str, given: list[str]) -> str | None:
    return next((each.removeprefix(option) for each in given if each.startswith(option)), None)


def _is_usual(context: dict[str, object]) -> bool:
    """Whether a runtime environment changes nothing but variables."""
    changed = {name for name, value in context.items() if value}
    return changed <= {"env_vars", "py_executable"} and context.get("py_executable") in (None, sys.executable)


def _set(variables: dict[str, str]) -> None:
    """Set them one after the other, as Ray does: ``${X}`` is what X is by then, or nothing."""
    for name, value in variables.items():
        os.environ[name] = re.sub(r"\$\{[A-Z0-9_]+\}", "", os.path.expandvars(value))


def _script_of_ray() -> str:
    ray = find_spec("ray")  # without importing it
    assert ray is not None
    assert ray.origin is not None
    return str(Path(ray.origin).parent / "_private" / "workers" / "setup_worker.py")


def _run(script: str, *arguments: str) -> None:
    """Run a script as if Python had been started with it. Nothing of Ray's modules is garbage, so they are not searched for any."""
    sys.argv = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(script).parent)
    gc.disable()
    import ray  # noqa: F401

    gc.freeze()
    gc.enable()
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
