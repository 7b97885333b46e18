"""What ``trainlib doctor`` says about the frameworks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from trainlib import _rooms as rooms
from trainlib._cli.findings import Finding, Health
from trainlib._distributions import version_of
from trainlib.errors import TrainlibError

__all__ = ["examine_frameworks", "framework_finding"]


def examine_frameworks() -> Iterator[Finding]:
    """Which frameworks are installed, and whether their trainers can use them. None is imported."""
    for name in rooms.ROOMS:
        room = rooms.load(name)
        problem = ""
        try:
            room.require_installed()
        except (ImportError, TrainlibError) as error:
            problem = str(error)
        found = installed(room.packages)
        yield framework_finding(name, room.packages, found, problem, room.version_package, _built_for(name, problem))
    yield _lightning()


def installed(packages: tuple[str, ...]) -> dict[str, str]:
    """Those packages that can be imported, by import name, with their versions."""
    return {package: version_of(package) or "of unknown version" for package in packages if find_spec(package)}


def framework_finding(
    name: str,
    packages: tuple[str, ...],
    installed: Mapping[str, str],
    problem: str = "",
    version_package: str | None = None,
    more: str = "",
) -> Finding:
    """What to say about one framework.

    A framework that is missing, or a package that its trainer needs besides, is no problem: nobody may want to train with it.
    A problem is what is complete and still cannot be used.

    Args:
        name: The framework.
        packages: What its trainer imports. The first is the framework's own.
        installed: Which packages are installed, with their versions.
        problem: Why the trainer cannot use it, if it cannot, and what to do.
        version_package: The package whose version is the framework's. Default: the first.
        more: What follows the version.

    Example:
        >>> framework_finding("huggingface", ("transformers", "torch"), {"torch": "2.13.0"}).detail
        'not installed'
    """
    own, *_ = packages
    missing = [package for package in packages if package not in installed]
    version = installed.get(version_package or own, "")
    if own in missing:
        return Finding(name, Health.NOTE, "not installed", problem)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return Finding(name, Health.NOTE, f"{version}, but {' and '.join(missing)} {verb} not installed", problem)
    if problem:
        return Finding(name, Health.PROBLEM, f"{version}, unusable", problem)
    return Finding(name, Health.OK, f"{version}{more}")


def _lightning() -> Finding:
    """It has no trainer of its own: it trains inside of a TorchTrainer's function."""
    names = ("lightning", "pytorch_lightning")  # the same code under two names
    package = next((name for name in names if find_spec(name)), names[0])
    packages = (package, "torch")
    found = installed(packages)
    problem = "" if len(found) == len(packages) else "trainlib.lightning needs it: pip install 'trainlib[lightning]'"
    return framework_finding("lightning", packages, found, problem)


def _built_for(name: str, problem: str) -> str:
    if name != "horovod" or problem:
        return ""
    from trainlib.horovod import _installed

    return f", built for {' and '.join(f'{each} {version}' for each, version in _installed.built_for().items())}"
