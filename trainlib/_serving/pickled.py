"""Which packages a pickle needs, read without unpickling it: whoever registers a model need not trust it."""

from __future__ import annotations

import pickletools
import sys
from collections import deque
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from trainlib import _rooms as rooms

__all__ = ["distributions_in", "packages_in"]

_BROUGHT = frozenset({"cloudpickle", "joblib", "numpy", "pandas", "pyarrow", "scipy"})
"""What MLflow and scikit-learn bring along."""


def distributions_in(file: Path, known: tuple[str, ...]) -> list[str]:
    """What has to be installed to load a pickle, besides packages that are known already. A user's own modules are left out: no
    index has them.

    Args:
        file: The pickle.
        known: Packages that are named anyway, by import name.
    """
    found = packages_in(file) - _BROUGHT - {*known} - sys.stdlib_module_names
    if not found:
        return []
    installed = packages_distributions()
    of_rooms = {package for name in rooms.ROOMS for package in rooms.load(name).packages}
    return [
        installed[package][0] if package in installed else package
        for package in sorted(found)
        if package in installed or package in of_rooms
    ]


def packages_in(file: Path) -> set[str]:
    """The top-level packages whose classes and functions a pickle names.

    Example:
        >>> import pickle, tempfile
        >>> from fractions import Fraction
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "a.pkl")
        ...     _ = file.write_bytes(pickle.dumps([Fraction(1, 2), Path()]))
        ...     sorted(packages_in(file))
        ['fractions', 'pathlib']
    """
    modules: set[str] = set()
    memo: dict[int, Any] = {}
    pushed: deque[Any] = deque(maxlen=2)  # a module and a name are the last two values before they are looked up
    argument: Any
    with file.open("rb") as opened:
        for opcode, argument, _ in pickletools.genops(opened):
            match opcode.name:
                case "SHORT_BINUNICODE" | "BINUNICODE" | "BINUNICODE8" | "UNICODE":
                    pushed.append(argument)
                case "BINGET" | "LONG_BINGET" | "GET":
                    pushed.append(memo.get(int(argument)))
                case "MEMOIZE":
                    memo[len(memo)] = pushed[-1] if pushed else None
                case "BINPUT" | "LONG_BINPUT" | "PUT":
                    memo[int(argument)] = pushed[-1] if pushed else None
                case "GLOBAL":
                    modules.add(argument.partition(" ")[0])
                case "STACK_GLOBAL":
                    modules.add(str(pushed[0]))
                    pushed.append(None)
                case "FRAME":  # which may stand between a module and a name
                    pass
                case _:
                    pushed.append(None)
    return {module.partition(".")[0] for module in modules}
