"""How much memory is left."""

from __future__ import annotations

import pytest

from trainlib._execution.pool.free_memory import free_share


@pytest.fixture
def container(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("950\n")
    (tmp_path / "memory.stat").write_text("anon 700\ninactive_file 40\n")
    return tmp_path


def test_of_the_machine(tmp_path):
    assert 0 < free_share(tmp_path) <= 1


def test_of_a_container(container):
    assert free_share(container) == pytest.approx(0.09), "what the kernel only caches is free"


def test_of_a_container_without_a_limit(container):
    (container / "memory.max").write_text("max\n")
    assert free_share(container) == pytest.approx(free_share(container / "nothing"), abs=0.1)
