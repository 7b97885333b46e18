"""Checks that Horovod is installed, and was built for the installed frameworks."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from trainlib.errors import HorovodUnavailableError
from trainlib.horovod import _recipe as recipe

BUILD = "python -m trainlib.horovod.build (in a checkout: make horovod)"


def built_for() -> dict[str, str]:
    """The frameworks that the Horovod of this environment was built for, with their versions.

    Raises:
        HorovodUnavailableError: Horovod is not installed.
    """
    found = find_spec("horovod")
    if found is None or found.origin is None:
        raise HorovodUnavailableError(f"HorovodTrainer needs Horovod, which has to be built from source. Run {BUILD}")
    known = json.loads((Path(found.origin).parent / "metadata.json").read_text())
    return {name: known[its_name] for name, its_name in recipe.FRAMEWORKS.items() if its_name in known}


def require() -> None:
    """Check that Horovod is installed, and was built for the installed torch and TensorFlow.

    Raises:
        HorovodUnavailableError: it is missing, or has to be rebuilt.
    """
    built = built_for()
    frameworks = recipe.installed_frameworks()
    if not built.keys() & frameworks.keys():
        wanted = " and ".join(built) or "neither torch nor TensorFlow"
        raise HorovodUnavailableError(
            f"Horovod was built for {wanted}, but this environment has {' and '.join(frameworks) or 'neither'}. Rebuild it with {BUILD}"
        )
    for name in built.keys() & frameworks.keys():
        # A build may have recorded torch as 2.13.0+cpu or as 2.13.0.
        if built[name].partition("+")[0] != frameworks[name].partition("+")[0]:
            raise HorovodUnavailableError(
                f"Horovod was built for {name} {built[name]}, but {frameworks[name]} is installed, and it would crash. "
                f"Rebuild it with {BUILD}"
            )
