"""Whether the Horovod of this environment can be used."""

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
        HorovodUnavailableError: there is none.
    """
    found = find_spec("horovod")
    if found is None or found.origin is None:
        raise HorovodUnavailableError(f"HorovodTrainer needs Horovod, which is built from its source: {BUILD}")
    known = json.loads((Path(found.origin).parent / "metadata.json").read_text())
    return {name: known[its_name] for name, its_name in recipe.FRAMEWORKS.items() if its_name in known}


def require() -> None:
    """Nothing, where Horovod is installed and was built for the torch and TensorFlow that are.

    Raises:
        HorovodUnavailableError: it is not, with what to do.
    """
    built = built_for()
    frameworks = recipe.installed_frameworks()
    if not built.keys() & frameworks.keys():
        wanted = " and ".join(built) or "neither torch nor TensorFlow"
        raise HorovodUnavailableError(
            f"Horovod was built for {wanted}; installed is {' and '.join(frameworks) or 'neither'}: rebuild it with {BUILD}"
        )
    for name in built.keys() & frameworks.keys():
        # A build knows torch as 2.13.0+cpu or as 2.13.0, depending on who built it.
        if built[name].partition("+")[0] != frameworks[name].partition("+")[0]:
            raise HorovodUnavailableError(
                f"Horovod was built for {name} {built[name]}, but {frameworks[name]} is installed, with which it would "
                f"crash: rebuild it with {BUILD}"
            )
