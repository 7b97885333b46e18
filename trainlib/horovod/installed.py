"""Whether the Horovod of this environment can be used."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from trainlib.errors import HorovodUnavailableError
from trainlib.horovod import recipe

BUILD = "python -m trainlib.horovod.build (in a checkout: make horovod)"


def require() -> None:
    """Nothing, where Horovod is installed and was built for the torch and TensorFlow that are.

    Raises:
        HorovodUnavailableError: it is not, with what to do.
    """
    found = find_spec("horovod")
    if found is None or found.origin is None:
        raise HorovodUnavailableError(f"HorovodTrainer needs Horovod, which is built from its source: {BUILD}")
    built_for = json.loads((Path(found.origin).parent / "metadata.json").read_text())
    frameworks = recipe.installed_frameworks()
    if not any(recipe.FRAMEWORKS[name] in built_for for name in frameworks):
        raise HorovodUnavailableError(f"Horovod was built for neither torch nor TensorFlow: rebuild it with {BUILD}")
    for name, version in frameworks.items():
        built = built_for.get(recipe.FRAMEWORKS[name], version)
        # A build knows torch as 2.13.0+cpu or as 2.13.0, depending on who built it.
        if built.partition("+")[0] != version.partition("+")[0]:
            raise HorovodUnavailableError(
                f"Horovod was built for {name} {built}, but {version} is installed, with which it would crash: "
                f"rebuild it with {BUILD}"
            )
