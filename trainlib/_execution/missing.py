"""What to do about a module that a worker lacks: it depends on where this process has it from."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
import sysconfig
from pathlib import Path

import trainlib
from trainlib._execution import code

__all__ = ["advice", "missing_module", "setup_problem"]

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def missing_module(error: BaseException | str) -> str | None:
    """The name of the module that an error is about; None if it is about something else.

    Example:
        >>> missing_module("ray.exceptions.ActorDiedError: ... ModuleNotFoundError: No module named 'einops.layers'")
        'einops.layers'
    """
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    found = _NO_MODULE.search(text)
    return found[1] if found else None


def advice(module: str, node: str) -> str:
    """How to get a module to a node that lacks it, in one or two sentences.

    Args:
        module: The module, with the packages that it is in.
        node: The node, as a person knows it.

    Example:
        >>> advice("no_such_thing", "gpu-7")
        "Node gpu-7 has no module 'no_such_thing', and neither has this process. Install it there, or put it beside the script."
    """
    package = module.partition(".")[0]
    lacks = f"Node {node} has no module {module!r}"
    if package == "trainlib":
        return f"{lacks}. Install trainlib {trainlib.__version__} there, for the Python that Ray runs in."
    place = _place(package)
    if place is None:
        return f"{lacks}, and neither has this process. Install it there, or put it beside the script."
    if (wanted := _requirement(package, place)) is not None:
        return (
            f"{lacks}; this process has {wanted}. Install it there (pip install {wanted}), or have Ray do it: "
            f"RunConfig(runtime_env={{'pip': [{wanted!r}]}})."
        )
    return f"{lacks}; this process has it from {place}. {_why_not_sent(place)}"


def setup_problem(text: str) -> str:
    """What went wrong while Ray set a ``runtime_env`` up, out of pages of it: what pip calls an error, or the last line.

    Example:
        >>> setup_problem("Failed to set up runtime environment.\\nERROR: No matching distribution found for x==9\\nhint: y")
        'No matching distribution found for x==9'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.partition("ERROR: ")[2] for line in lines if "ERROR: " in line]
    return "; ".join(dict.fromkeys(errors)) or lines[-1]


def _why_not_sent(place: Path) -> str:
    send = f"RunConfig(runtime_env={{'py_modules': [{str(place)!r}]}})"
    found = code.script_folder()
    folder = found.folder if isinstance(found, code.Unsent) else found
    if not place.is_relative_to(folder):
        return f"It is not in the script's folder, {folder}, so it was not sent. Send it: {send}."
    if isinstance(found, code.Unsent):
        return f"The script's folder, {folder}, was not sent: {found.why}. Or send the module alone: {send}."
    return (
        f"The script's folder, {folder}, is sent to other machines when a script connects to Ray, without what .gitignore, "
        f".rayignore and runtime_env['excludes'] name. See that it is not among that, or send it: {send}."
    )


def _place(package: str) -> Path | None:
    """The folder or file of a module of this process. Nothing is imported to find it."""
    loaded = sys.modules.get(package)
    try:
        spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.has_location and spec.origin else None


def _requirement(package: str, place: Path) -> str | None:
    """What pip would call it, if pip has installed it here."""
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    if not any(place.is_relative_to(folder) for folder in installed):
        return None
    names = importlib.metadata.packages_distributions().get(package, ())
    return f"{names[0]}=={importlib.metadata.version(names[0])}" if names else package
