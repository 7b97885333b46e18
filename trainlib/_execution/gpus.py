"""Which GPUs a worker can see."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["gpu_order", "indices_of", "shared_by_node"]

CUDA_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def shared_by_node(nodes: Sequence[str], gpus: Sequence[Sequence[str]]) -> list[list[str]]:
    """The ids of the GPUs that each worker is to see: all that the gang has on the worker's node, in order.

    Ray lets a worker see only the GPUs that it has reserved. Then all workers of a node have a ``cuda:0`` and no more, and code
    that picks ``cuda:{local_rank}`` fails; GPUs that do not see each other also exchange tensors more slowly.

    Args:
        nodes: The node of each worker.
        gpus: The ids of the GPUs that each worker has reserved.

    Example:
        >>> shared_by_node(["a", "a", "b"], [["1"], ["0"], ["0"]])
        [['0', '1'], ['0', '1'], ['0']]
    """
    seen: dict[str, set[str]] = {}
    for node, own in zip(nodes, gpus, strict=True):
        seen.setdefault(node, set()).update(own)
    return [sorted(seen[node], key=gpu_order) for node in nodes]


def gpu_order(gpu: str) -> tuple[int, str]:
    """A key that sorts ids of GPUs. They are numbers, or names such as ``GPU-8f6e...``."""
    return (int(gpu), "") if gpu.isdigit() else (0, gpu)


def indices_of(own: Sequence[str], visible: str | None) -> list[int]:
    """The numbers by which a process addresses its own GPUs, as in ``cuda:1``.

    Args:
        own: Their ids.
        visible: Its ``CUDA_VISIBLE_DEVICES``; None if it can see all GPUs of its node.

    Raises:
        RuntimeError: it cannot see one of them.

    Example:
        >>> indices_of(["3"], "1,3")
        [1]
    """
    if visible is None:
        return sorted(int(gpu) for gpu in own)
    listed = visible.split(",")
    if hidden := [gpu for gpu in own if gpu not in listed]:
        raise RuntimeError(
            f"{CUDA_VISIBLE_DEVICES} is {visible!r}, so this worker cannot see GPU {', '.join(hidden)}, which it has reserved. Do "
            "not change it in the training function, nor in runtime_env"
        )
    return sorted(listed.index(gpu) for gpu in own)
