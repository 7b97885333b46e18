"""What has to be installed for a package to be importable: ``pip install scikit-learn``, but ``import sklearn``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["distribution_of", "version_of"]

_NAMES: dict[str, tuple[str, ...]] = {
    "lightning": ("lightning", "pytorch-lightning"),
    "sklearn": ("scikit-learn",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tf-nightly"),
    "tree": ("dm-tree",),
    "xgboost": ("xgboost", "xgboost-cpu"),
}
"""The distributions that bring a package, where they have another name. The first is the usual one."""


def distribution_of(package: str) -> str:
    """The distribution that brings a package, by the package's import name: the installed one, or else the usual one.

    Example:
        >>> distribution_of("sklearn"), distribution_of("torch")
        ('scikit-learn', 'torch')
    """
    known = _NAMES.get(package, (package,))
    return next((name for name in known if _version(name) is not None), known[0])


def version_of(package: str) -> str | None:
    """The version of a package, by its import name. None if it is not installed. Nothing is imported."""
    return _version(distribution_of(package))


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
