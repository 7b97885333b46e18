"""The files that make a checkpoint a model of MLflow's: ``mlflow.pyfunc.load_model`` and ``mlflow models serve`` take it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from trainlib import _rooms as rooms
from trainlib import _storage as storage
from trainlib._distributions import distribution_of, version_of
from trainlib._registry.retention import SavedCheckpoint
from trainlib._serving.checkpoints import served_module, why_not_of_kind, why_not_served
from trainlib._serving.pickled import distributions_in
from trainlib._serving.preprocessing import DICT_FILE, PREPROCESSOR_FILE
from trainlib.checkpoint import Checkpoint

__all__ = ["MLFLOW_FILE", "model_code", "put_model_files", "requirements"]

MLFLOW_FILE = "MLmodel"
"""What makes a folder a model of MLflow's. It is written last: until then, the other files mean nothing."""
CODE_FOLDER = "code"
_REQUIREMENTS = "requirements.txt"
_PYTHON_ENV = "python_env.yaml"
_PICKLED_MODEL = "model.pkl"
"""What a SklearnCheckpoint has its estimator in."""
_HERE = "trainlib._serving"
_COPIED = {"__init__": f"{_HERE}.loader", "preprocessing": f"{_HERE}.preprocessing", "arrays": f"{_HERE}.arrays"}
"""What a model's code consists of, besides the room's own module."""


def put_model_files(saved: SavedCheckpoint, run_id: str) -> str | None:
    """Make a checkpoint one that MLflow can load by itself, unless it is one. Returns why that is impossible, if it is.

    The files stand around the folder of the checkpoint, at the root of its logged model. The checkpoint stays as it is.

    Args:
        saved: The checkpoint.
        run_id: The MLflow run that saved it.
    """
    if (problem := why_not_of_kind(saved.kind)) is not None:
        return problem
    root, _, checkpoint = saved.location.rstrip("/").rpartition("/")
    if MLFLOW_FILE in storage.names_in(root):
        return None
    with Checkpoint(saved.location).as_directory() as folder:
        if (problem := why_not_served(saved.kind, folder)) is not None:
            return problem
        needs_ray = _has_preprocessor(Path(folder))
        packages = _packages_for(saved.kind, Path(folder))
    code = model_code(saved.kind)
    package = f"trainlib_served_{hashlib.sha256(repr(sorted(code.items())).encode()).hexdigest()[:10]}"
    files = {f"{CODE_FOLDER}/{package}/{name}.py": text for name, text in code.items()}
    files[_REQUIREMENTS] = "".join(f"{each}\n" for each in requirements(packages, needs_ray=needs_ray))
    files[_PYTHON_ENV] = _python_env()
    files[MLFLOW_FILE] = _mlmodel(saved.model_id, run_id, package, checkpoint)
    storage.put_files(root, {name: text.encode() for name, text in files.items()})
    return None


def model_code(kind: str) -> dict[str, str]:
    """The modules that load a model, by name. The package has the name of its contents: models of two versions get on."""
    module = served_module(kind)
    assert module is not None
    # Beside the model they are one package: what they import of each other, they import from there.
    return {
        name: _source(source).replace(f"from {_HERE}.", "from .")
        for name, source in {**_COPIED, "model": module}.items()
    }


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def _has_preprocessor(folder: Path) -> bool:
    """Whether there is one of Ray's in a checkpoint. A dict is not unpickled for that: the names of classes stand in it."""
    whole = folder / DICT_FILE
    return (folder / PREPROCESSOR_FILE).exists() or (whole.exists() and b"ray.data" in whole.read_bytes())


def _packages_for(kind: str, folder: Path) -> tuple[str, ...]:
    """What loading a checkpoint imports. An estimator like scikit-learn's may be of another library, such as XGBoost."""
    room = rooms.load(kind)
    named = room.served_packages or room.packages
    pickled = folder / _PICKLED_MODEL
    return (*named, *(distributions_in(pickled, named) if pickled.exists() else []))


def requirements(packages: Iterable[str], *, needs_ray: bool) -> list[str]:
    """What has to be installed to load a model, as pip takes it, in the versions that are installed here.

    Args:
        packages: What its code imports, by import name; with extras, as in ``ray[rllib]``.
        needs_ray: Whether there is a preprocessor of Ray's.

    Example:
        >>> [each.partition("==")[0] for each in requirements(["sklearn", "ray[rllib]"], needs_ray=True)]
        ['mlflow', 'scikit-learn', 'ray[data,rllib]']
    """
    extras: dict[str, set[str]] = {}
    for each in ("mlflow", *packages, *(["ray[data]"] if needs_ray else [])):
        name, _, extra = each.rstrip("]").partition("[")
        extras.setdefault(name, set()).update([extra] if extra else [])
    return [_pinned(name, sorted(wanted)) for name, wanted in extras.items()]


def _pinned(package: str, extras: list[str]) -> str:
    named = f"{distribution_of(package)}[{','.join(extras)}]" if extras else distribution_of(package)
    version = version_of(package)
    if version is None:  # whoever registers a model need not have its framework
        return named
    return f"{named}=={version.partition('+')[0]}"  # without that of a build such as +cpu, which no index has


def _python_env() -> str:
    import yaml

    return yaml.safe_dump(  # type: ignore[no-any-return]
        {
            "python": platform.python_version(),
            "build_dependencies": ["pip", "setuptools", "wheel"],
            "dependencies": [f"-r {_REQUIREMENTS}"],
        },
        sort_keys=False,
    )


def _mlmodel(model_id: str, run_id: str, package: str, checkpoint: str) -> str:
    from mlflow import pyfunc
    from mlflow.models import Model

    model = Model(run_id=run_id, model_id=model_id)
    pyfunc.add_to_model(model, loader_module=package, data=checkpoint, code=CODE_FOLDER, python_env=_PYTHON_ENV)
    return str(model.to_yaml())
