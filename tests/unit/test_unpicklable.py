"""What cannot be sent to the workers is named, with where it comes from."""

from __future__ import annotations

import functools
import re
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from trainlib import DataParallelTrainer
from trainlib._unpicklable import whats_unpicklable
from trainlib.errors import InvalidArgumentError

LOCK = threading.Lock()
KEPT: dict[str, Any] = {"locks": [1, LOCK]}


class Store:
    def __init__(self) -> None:
        self.size = 3
        self.writer = {"lock": threading.Lock()}

    def train(self) -> int:
        return self.size


@dataclass
class Settings:
    name: str = "a"
    lock: Any = field(default_factory=threading.Lock)


def line_of(function: Any, offset: int = 1) -> str:
    return rf"\(test_unpicklable\.py, line {function.__code__.co_firstlineno + offset}\)"


def whats_wrong(value: Any) -> str:
    found = whats_unpicklable(value)
    assert found is not None
    return found


def test_a_variable_of_the_function_around_it():
    lock = threading.Lock()

    def train_func() -> None:
        with lock:
            pass

    assert re.fullmatch(
        r"it uses the variable lock of test_a_variable_of_the_function_around_it "
        + line_of(train_func)
        + r", which is a _thread\.lock: cannot pickle '_thread\.lock' object",
        whats_wrong(train_func),
    )


def test_a_global_variable_and_what_it_holds():
    def train_func() -> None:
        print("first")
        print(KEPT)

    assert re.search(
        rf"it uses the global variable KEPT {line_of(train_func, 2)}, which holds a _thread.lock in \['locks'\]\[1\]: cannot",
        whats_wrong(train_func),
    )


def test_a_function_that_the_function_calls():
    def helper() -> Any:
        return [LOCK for _ in range(3)]

    def train_func() -> None:
        helper()

    assert re.search(
        rf"it uses the variable helper of .* {line_of(train_func)}, which uses the global variable LOCK {line_of(helper)}, which "
        r"is a _thread\.lock",
        whats_wrong(train_func),
    )


def test_a_default_a_partial_and_an_object():
    def train_func(config: Any, lock: Any = LOCK) -> None: ...

    assert "it has a default for its parameter lock, which is a _thread.lock: cannot" in whats_wrong(train_func)
    assert re.search(
        r"it holds \['f'\], which has a default for its parameter lock, which is", whats_wrong({"f": train_func})
    )
    partial = functools.partial(print, 1, lock=LOCK)
    assert "it holds a _thread.lock in .keywords['lock']: cannot" in whats_wrong(partial)
    assert "it holds a _thread.lock in .__self__.writer['lock']: cannot" in whats_wrong(Store().train)
    assert "it holds a _thread.lock in ['settings'].lock: cannot" in whats_wrong({"a": 1, "settings": Settings()})


def test_a_class_that_is_defined_beside_it():
    class Network:
        def forward(self) -> Any:
            return LOCK

    network = Network()
    assert re.search(r"it is of the class .*Network, which has the method forward, which uses", whats_wrong(network))

    def train_func() -> Any:
        return Network()

    assert re.search(
        r"it uses the variable Network of .*, which has the method forward, which uses the global variable LOCK",
        whats_wrong(train_func),
    )


def test_one_that_holds_itself_and_one_that_refuses_by_itself():
    class Refuses:
        def __reduce__(self) -> Any:
            raise RuntimeError("I stay here")

    held: list[Any] = [Refuses()]
    held.append(held)
    assert re.search(r"it holds a .*Refuses in \[0\]: I stay here", whats_wrong(held))
    assert whats_unpicklable({"a": print}) is None


def test_a_trainer_names_the_argument():
    def train_func(config: Any) -> None:
        print(LOCK)

    trainer = DataParallelTrainer(train_func)
    with pytest.raises(
        InvalidArgumentError,
        match=r"the training function train_func cannot be sent to the workers: it uses the global variable LOCK.*Create it inside "
        r"the training function, or pass what it is made of",
    ):
        trainer.settings.dumps()

    trainer = DataParallelTrainer(print, train_loop_config={"a": {"lock": LOCK}})
    with pytest.raises(
        InvalidArgumentError,
        match=r"^train_loop_config cannot be sent to the workers: it holds a _thread\.lock in \['a'\]\['lock'\]: cannot pickle",
    ):
        trainer.settings.dumps()
