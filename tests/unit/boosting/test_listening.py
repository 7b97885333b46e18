"""XGBoost listens on all addresses: only its own sockets are narrowed, and a training does without where that is not allowed."""

from __future__ import annotations

import os
import socket

from trainlib._execution.network import listening_sockets, narrow_listeners

ON_ALL = ("0.0.0.0", 0)


def interface_of(listener: socket.socket) -> str:
    return listener.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).strip(b"\0").decode()


def test_sockets_that_listened_before_are_left_alone():
    with socket.create_server(ON_ALL) as rays, socket.create_server(("127.0.0.1", 0)) as here:
        before = listening_sockets()
        with socket.create_server(ON_ALL) as theirs:
            assert narrow_listeners("127.0.0.1", but=before) == []
            assert [interface_of(each) for each in (rays, here, theirs)] == ["", "", "lo"]


def test_looking_at_sockets_leaves_no_file_open(tmp_path):
    with open(tmp_path / "file", "w"), socket.create_server(ON_ALL):
        before = len(os.listdir("/proc/self/fd"))
        narrow_listeners("127.0.0.1", but=listening_sockets())
        assert len(os.listdir("/proc/self/fd")) == before


def test_where_it_is_not_allowed_the_ports_are_named_and_nothing_fails(monkeypatch):
    """Linux before 5.7 lets only root do it."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    before = listening_sockets()
    with socket.create_server(ON_ALL) as theirs:
        monkeypatch.setattr(socket.socket, "setsockopt", refuse)
        assert narrow_listeners("127.0.0.1", but=before) == [theirs.getsockname()[1]]
