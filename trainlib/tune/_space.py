"""A search space, and the configs in it. Pure: the caller passes the function that chooses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle
from pydantic import BaseModel

from trainlib._secrets import masked
from trainlib.tune._domains import Categorical, Domain, Function, Grid, Param, label
from trainlib.tune._point import NotStored, Path, Point
from trainlib.tune._sample import as_domain

__all__ = ["Space", "leaves", "value_at"]

# The names of params leave out these keys.
_LEFT_OUT = ("train_loop_config", "params")


@dataclass(frozen=True)
class Template:
    """A config object with search spaces in place of values."""

    model: type[BaseModel]
    fields: dict[str, Any]


class Space:
    """The search space that a user passed as ``param_space``.

    Example:
        >>> from trainlib import tune
        >>> space = Space({"lr": tune.loguniform(0.01, 1), "layers": tune.grid_search([1, 2, 3])})
        >>> space.grid_size
        3
        >>> space.config_of(Point(1, {"lr": 0.1, "layers": 2}))
        {'lr': 0.1, 'layers': 2}
    """

    def __init__(self, tree: Any, root: Path = ()) -> None:
        """A space. ``root`` is the path of the part that the user wrote, which is what ``sample_from`` functions see."""
        self.tree = _parsed(tree, ())
        self._root = root
        found = dict(leaves(self.tree))
        self._names = _names(list(found))
        self.grids = {self._names[path]: grid for path, grid in found.items() if isinstance(grid, Grid)}
        self.domains = {self._names[path]: domain for path, domain in found.items()}

    @property
    def grid_size(self) -> int:
        """How many points the grid has; 1 without a grid."""
        return math.prod(len(grid.values) for grid in self.grids.values())

    @property
    def fingerprint(self) -> str:
        """Equal for spaces with the same choices. The code of ``sample_from`` functions does not count."""
        shown = {name: getattr(d, "labels", None) or _shown(d) for name, d in sorted(self.domains.items())}
        return repr(shown)

    def grid_params(self, number: int) -> dict[str, Param]:
        """The grid values of a trial. The last grid changes fastest, as in nested loops.

        Example:
            >>> from trainlib import tune
            >>> space = Space({"a": tune.grid_search([1, 2]), "b": tune.grid_search(["x", "y"])})
            >>> [space.grid_params(number) for number in range(3)]
            [{'a': 1, 'b': 'x'}, {'a': 1, 'b': 'y'}, {'a': 2, 'b': 'x'}]
        """
        position = number % self.grid_size
        chosen: dict[str, Param] = {}
        for name, grid in reversed(self.grids.items()):
            position, index = divmod(position, len(grid.values))
            chosen[name] = grid.labels[index]
        return dict(reversed(chosen.items()))

    def resolve(
        self, choose: Callable[[str, Domain], Param], computed: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A config, and the values of its ``sample_from`` functions. Those in ``computed`` are not called again."""
        drawn = self._drawn(self.tree, (), choose)
        functions = _Functions(drawn, self._root, self._names, computed)
        return functions.resolve(drawn, ()), functions.values

    def config_of(self, point: Point) -> Any:
        """The config of a point.

        Raises:
            KeyError: the point is from another space.
            ValueError: it has an object that was not stored with it.
        """
        config, _ = self.resolve(lambda name, domain: point.params[name], point.computed or None)
        for path, value in point.changed.items():
            if isinstance(value, NotStored):
                raise ValueError(
                    f"population based training had set param_space{_at(path)} to {value.label}, an object that is not "
                    "stored between processes. Let it choose names or numbers, and create the object in the training function"
                )
            config = _replaced(config, path, value)
        return config

    def shown(self, config: Any) -> dict[str, Any]:
        """The params that vary between trials, by name, with short texts for objects. Secrets are masked."""
        values: dict[str, Any] = {}
        for path, name in self._names.items():
            value = value_at(config, path)
            plain = isinstance(value, (str, int, float, bool, type(None)))
            values[name] = masked(value if plain else label(value), name)
        return values

    def _drawn(self, node: Any, path: Path, choose: Callable[[str, Domain], Param], prefix: str | None = None) -> Any:
        match node:
            case Function():
                return node
            case Domain():
                name = self._names.get(path) if prefix is None else prefix
                assert name is not None
                param = choose(name, node)
                value = node.value(param)
                if isinstance(
                    node, Categorical
                ):  # the value may itself contain domains, which count only if it is chosen
                    return self._drawn(value, path, choose, f"{name}[{node.index(param)}]") if _varies(value) else value
                return value
            case Template():
                return Template(node.model, self._drawn(node.fields, path, choose, prefix))
            case dict():
                return {
                    key: self._drawn(item, (*path, key), choose, None if prefix is None else f"{prefix}.{key}")
                    for key, item in node.items()
                }
            case list() | tuple():
                items = [
                    self._drawn(item, (*path, i), choose, None if prefix is None else f"{prefix}.{i}")
                    for i, item in enumerate(node)
                ]
                return tuple(items) if isinstance(node, tuple) else items
        return node


class ConfigView(Mapping[str, Any]):
    """The config that a ``sample_from`` function gets: ``config["lr"]``, ``config.lr`` or ``spec.config.lr``."""

    def __init__(self, node: dict[str, Any], path: Path, functions: _Functions) -> None:
        self._node = node
        self._path = path
        self._functions = functions

    def __getitem__(self, key: str) -> Any:
        if key not in self._node and key == "config" and self._path == self._functions.root:
            return self
        value = self._node[key]
        return self._functions.view(value, (*self._path, key))

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"the config has no {key!r}. It has {', '.join(map(str, self._node))}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._node)

    def __len__(self) -> int:
        return len(self._node)


class _Functions:
    """Calls the ``sample_from`` functions, in the order in which they need each other's values."""

    def __init__(self, tree: Any, root: Path, names: dict[Path, str], known: Mapping[str, Any] | None) -> None:
        self.root = root
        self.values: dict[str, Any] = {}
        self._tree = value_at(tree, root)
        self._names = names
        self._known = known or {}
        self._computing: list[str] = []

    def resolve(self, node: Any, path: Path) -> Any:
        match node:
            case Function():
                return self._value(node, path)
            case Template():
                return node.model(**self.resolve(node.fields, path))
            case dict():
                return {key: self.resolve(item, (*path, key)) for key, item in node.items()}
            case list():
                return [self.resolve(item, (*path, i)) for i, item in enumerate(node)]
            case tuple():
                return tuple(self.resolve(item, (*path, i)) for i, item in enumerate(node))
        return node

    def view(self, node: Any, path: Path) -> Any:
        if isinstance(node, Template):
            node = node.fields
        return ConfigView(node, path, self) if isinstance(node, dict) else self.resolve(node, path)

    def _value(self, function: Function, path: Path) -> Any:
        name = self._names.get(path) or ".".join(map(str, path))
        if name in self._known:
            self.values[name] = self._known[name]
        if name not in self.values:
            if name in self._computing:
                circle = " needs ".join([*self._computing, name])
                raise ValueError(
                    f"the functions of sample_from need each other: {circle}. Make one of them independent of the others"
                )
            self._computing.append(name)
            self.values[name] = function.compute(self.view(self._tree, self.root))
            self._computing.pop()
        return self.values[name]


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Domain]]:
    """All domains of a space with their paths, except those inside the values of a choice."""
    match node:
        case Domain():
            yield path, node
        case Template():
            yield from leaves(node.fields, path)
        case dict():
            for key, item in node.items():
                yield from leaves(item, (*path, key))
        case list() | tuple():
            for index, item in enumerate(node):
                yield from leaves(item, (*path, index))


def _parsed(node: Any, path: Path) -> Any:
    """The tree, with a domain in place of each spelling of one."""
    try:
        domain = as_domain(node)
    except ValueError as error:
        raise ValueError(f"param_space{_at(path)}: {error}") from None
    if isinstance(domain, Categorical):
        values = tuple(_parsed(value, path) for value in domain.values)
        if any(isinstance(found, Grid) for value in values for _, found in leaves(value)):
            raise ValueError(
                f"param_space{_at(path)}: a grid_search inside another choice would be tried only in some trials. Use tune.choice "
                "there, or move the grid_search out"
            )
        return type(domain)(values, next((str(part) for part in reversed(path) if isinstance(part, str)), ""))
    if domain is not None:
        return domain
    if isinstance(node, BaseModel):
        fields = {name: getattr(node, name) for name in node.model_fields_set}
        parsed = _parsed(fields, path)
        return Template(type(node), parsed) if _varies(parsed) else node
    if isinstance(node, dict):
        return {key: _parsed(item, (*path, key)) for key, item in node.items()}
    if type(node) in (list, tuple):
        return type(node)(_parsed(item, (*path, i)) for i, item in enumerate(node))
    return node


def require_picklable(tree: Any, path: Path = ()) -> None:
    """Check that all values can be sent to another process.

    Raises:
        ValueError: one cannot. The message names it and its path.
    """
    try:
        cloudpickle.dumps(tree)
        return
    except Exception as error:  # pickling runs user code
        if isinstance(tree, dict):
            for key, item in tree.items():
                require_picklable(item, (*path, key))
        elif isinstance(tree, Categorical):
            for value in tree.values:
                require_picklable(value, path)
        elif isinstance(tree, (list, tuple)):
            for index, item in enumerate(tree):
                require_picklable(item, (*path, index))
        raise ValueError(
            f"param_space{_at(path)} has a {type(tree).__name__} that cannot be sent to the workers: {error}. Create it in the "
            "training function instead, from settings that can be sent"
        ) from None


def _varies(node: Any) -> bool:
    return next(leaves(node), None) is not None


def _names(paths: list[Path]) -> dict[Path, str]:
    """Short names where they are unique, else full ones."""
    short = {path: ".".join(map(str, path[1:] if path[0] in _LEFT_OUT and len(path) > 1 else path)) for path in paths}
    taken = list(short.values())
    return {path: name if taken.count(name) == 1 else ".".join(map(str, path)) for path, name in short.items()}


def _at(path: Path) -> str:
    return "".join(f"[{part!r}]" for part in path)


def value_at(node: Any, path: Path) -> Any:
    """The value at a path of a config."""
    for part in path:
        node = getattr(node, str(part)) if isinstance(node, BaseModel) else node[part]
    return node


def _replaced(node: Any, path: Path, value: Any) -> Any:
    """A copy of the tree with another value at a path."""
    if not path:
        return value
    head, *rest = path
    if isinstance(node, dict):
        return {**node, head: _replaced(node[head], tuple(rest), value)}
    items = [*node]
    items[int(head)] = _replaced(items[int(head)], tuple(rest), value)
    return tuple(items) if isinstance(node, tuple) else items


def _shown(domain: Domain) -> str:
    return "function" if isinstance(domain, Function) else repr(domain)
