"""What every rank is doing: read from inside, from outside where Python does not run, and told in a few lines."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from trainlib._execution import blame
from trainlib._execution.events import Failed
from trainlib._execution.stacks import desk
from trainlib._execution.stacks.dump import dump
from trainlib._execution.stacks.frames import Frame, ProcessStacks, ThreadStack, own_stacks, parse_dump
from trainlib._execution.stacks.report import RankStacks, essential, in_full, in_short

PACKAGE = os.path.dirname(os.path.dirname(blame.__file__))
CALLER = Frame(f"{PACKAGE}/_execution/worker.py", 90, "_run")
BOOTSTRAP = Frame("/usr/lib/python3.11/threading.py", 1002, "_bootstrap")
WRAPPER = Frame(f"{PACKAGE}/trainer.py", 5, "call")
TRAIN = Frame("/home/ada/train.py", 12, "train_func", "all_reduce(gradients)")
LIBRARY = [Frame(f"/venv/lib/python3.11/site-packages/torch/{name}.py", 7, name) for name in ("a", "b", "c")]


def rank(number: int, *frames: Frame, **more) -> RankStacks:
    threads = (ThreadStack("training-function", frames, is_training=True),) if frames else ()
    return RankStacks(number, "node-1", 100 + number, ProcessStacks(threads), **more)


# -- what is essential ------------------------------------------------------------------------------------


def test_an_error_shows_the_users_frames_and_the_innermost():
    assert essential([BOOTSTRAP, CALLER, WRAPPER, TRAIN, *LIBRARY]) == [TRAIN, None, *LIBRARY[1:]]


def test_of_a_recursion_without_end_the_innermost_calls_are_shown():
    calls = [Frame("/home/ada/train.py", line, "again") for line in range(90)]
    assert essential([CALLER, *calls]) == [None, *calls[-6:]]


def test_what_several_ranks_do_is_said_once():
    text = in_short([rank(number, CALLER, TRAIN) for number in range(20)])
    assert text.count("all_reduce(gradients)") == 1
    assert text.startswith("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more:\n")


def test_what_an_error_shows_is_bounded():
    text = in_short([rank(number, Frame("/home/ada/train.py", number, "f", "x" * 5000)) for number in range(1000)])
    assert len(text) < 3000
    assert text.endswith("and 994 other ranks")


def test_a_rank_that_does_nothing_is_named_with_the_reason():
    ended = rank(0, raised=(CALLER, TRAIN))
    stopped = RankStacks(1, "node-2", 7, ProcessStacks(problem="its process is stopped (SIGSTOP)"))
    text = in_short([ended, stopped, rank(2)])
    assert "rank 0 (node-1, pid 100):\n  its training function raised in\n" in text
    assert "all_reduce(gradients)" in text
    assert "rank 1 (node-2, pid 7):\n  its process is stopped" in text
    assert "rank 2 (node-1, pid 102):\n  its training function does not run" in text


def test_in_full_all_threads_are_shown_the_training_functions_first():
    other = ThreadStack("loader", (BOOTSTRAP,), is_training=False)
    training = ThreadStack("training-function", (CALLER, TRAIN), is_training=True)
    text = in_full([RankStacks(3, "node-1", 9, ProcessStacks.of([other, training]))])
    assert text.startswith("rank 3 (node-1, pid 9)\nTraining function (thread training-function):\n")
    assert text.index("all_reduce(gradients)") < text.index("Thread loader:")


# -- from inside, and from outside ------------------------------------------------------------------------


def test_a_process_tells_what_its_other_threads_are_doing():
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait, args=(60,), name="waits")
    thread.start()
    try:
        (found,) = [each for each in own_stacks().threads if each.name == "waits"]
    finally:
        waiting.set()
        thread.join()
    assert found.frames[-1].function == "wait"
    assert not found.is_training


def test_a_dump_is_understood():
    text = f"""Thread 0x00007f92d42a66c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f92d4e63b80 (most recent call first):
  File "/home/ada/train.py", line 12 in <lambda>
  File "{CALLER.file}", line 90 in _run
"""
    stacks = parse_dump(text)
    assert [thread.is_training for thread in stacks.threads] == [True, False]
    caller, function = stacks.training.frames
    assert caller.code == linecache.getline(CALLER.file, CALLER.line).strip()
    assert function == Frame("/home/ada/train.py", 12, "<lambda>"), "its file cannot be read here"


HOLDS_THE_LOCK = """
from trainlib._execution.stacks.dump import prepare
if {prepared}:
    prepare()
print("ready", flush=True)
def keeps_the_lock():
    return sum(range(10**13))  # in C, without ever letting another thread run
keeps_the_lock()
"""


@pytest.fixture
def busy_process(request):
    command = [sys.executable, "-c", HOLDS_THE_LOCK.format(prepared=request.param)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("busy_process", [True], indirect=True)
def test_a_process_that_lets_no_python_run_is_read_from_outside(busy_process):
    deadline = time.monotonic() + 10
    while "keeps_the_lock" not in (names := [frame.function for frame in dump(busy_process.pid).threads[0].frames]):
        assert time.monotonic() < deadline, names
    assert names == ["<module>", "keeps_the_lock"]
    assert busy_process.poll() is None, "it goes on"

    busy_process.send_signal(signal.SIGSTOP)
    os.waitpid(busy_process.pid, os.WUNTRACED)
    assert dump(busy_process.pid).problem == "its process is stopped (SIGSTOP)"
    busy_process.kill()
    busy_process.wait()
    assert "cannot be inspected" in dump(busy_process.pid).problem


@pytest.mark.parametrize("busy_process", [False], indirect=True)
def test_a_process_that_the_signal_would_end_does_not_get_it(busy_process):
    assert "cannot be inspected from outside" in dump(busy_process.pid).problem
    assert busy_process.poll() is None


# -- asking -----------------------------------------------------------------------------------------------


def test_a_training_answers_until_its_attempt_is_over():
    one = desk.StacksDesk("a-run")
    try:
        assert desk.ask("a-run", os.getpid()) == "Its workers are not up yet."
        with pytest.raises(ConnectionError, match="another process answers in its place"):
            desk.ask("a-run", os.getpid() + 1)
        desk.StacksDesk("a-run").close()  # a second one is in nobody's way
        assert desk.ask("a-run", os.getpid())
    finally:
        one.close()
    with pytest.raises(ConnectionRefusedError):
        desk.ask("a-run", os.getpid())
    desk.StacksDesk("a-run").close()


ASKS_AS_NOBODY = """
import os, sys
from trainlib._execution.stacks import desk
os.setuid(65534)
try:
    print(desk.ask("a-run", int(sys.argv[1])))
except ConnectionError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_gets_no_answer():
    one = desk.StacksDesk("a-run")
    try:
        command = [sys.executable, "-c", ASKS_AS_NOBODY, str(os.getpid())]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        one.close()
    assert answer == "it belongs to another user\n"


# -- when an error has them -------------------------------------------------------------------------------


class HorovodInternalError(RuntimeError):
    pass


GANG: Any = [SimpleNamespace(facts=SimpleNamespace(hostname="host"))] * 2


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("[unbound_buffer.cc:81] Timed out waiting 5000ms for recv operation to complete"), True),
        (RuntimeError("wait timeout after 5000ms, keys: /default_pg/0//cpu//0/0"), True),
        (HorovodInternalError("Horovod has been shut down."), True),
        (RuntimeError("DEADLINE_EXCEEDED"), True),
        (TimeoutError(), True),
        (ValueError("no more data"), False),
        (RuntimeError("Connection closed by peer [127.0.0.1]:5000"), False),
    ],
)
def test_an_error_of_one_that_waited_in_vain_has_stacks(error, expected):
    assert blame.is_hang(GANG, failed={1: Failed.of(error)}, lost={}) is expected


def test_an_error_of_a_silent_rank_has_stacks_and_one_of_a_dead_rank_has_none():
    assert blame.is_hang(GANG, failed={}, lost={0: TimeoutError("silent for 5 s")})
    assert not blame.is_hang(GANG, failed={1: Failed.of(TimeoutError())}, lost={0: RuntimeError("killed")})
