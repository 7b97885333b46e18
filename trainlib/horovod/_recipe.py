"""How Horovod is built: the source, the changes to it, and the frameworks.

Horovod's last release does not compile against current torch and TensorFlow. These are the changes that it
needs. The version of a build names the frameworks and a hash of these changes, so that no stale build is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from trainlib.errors import HorovodBuildError

VERSION = "0.28.1"
SOURCE_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"

FRAMEWORKS = {"torch": "pytorch", "tensorflow": "tensorflow"}
"""The packages that Horovod is built for, and Horovod's names for them."""

LIBRARIES = {"torch": "horovod/torch/mpi_lib_v2", "tensorflow": "horovod/tensorflow/mpi_lib"}
"""The library in a build for each of them."""


@dataclass(frozen=True)
class Edit:
    """One change to the source: ``old``, which occurs in ``file`` exactly once, becomes ``new``."""

    file: str
    old: str
    new: str
    why: str


EDITS = (
    Edit(
        "CMakeLists.txt",
        "set(CMAKE_CXX_STANDARD 14)",
        "set(CMAKE_CXX_STANDARD 17)\nset(CMAKE_SKIP_RPATH ON)",
        "torch's headers need C++17, and the path of the build folder must not end up in the libraries",
    ),
    Edit(
        "horovod/torch/CMakeLists.txt",
        "set(CMAKE_CXX_STANDARD 14)",
        "set(CMAKE_CXX_STANDARD 17)",
        "torch's headers need C++17",
    ),
    Edit(
        "horovod/common/gloo/gloo_controller.cc",
        "global_ranks_.reserve(size_);",
        "global_ranks_.resize(size_);",
        "without it the ranks stay unknown, and the stall check never fires under gloo",
    ),
    Edit(
        "horovod/tensorflow/CMakeLists.txt",
        'list(APPEND TF_SOURCES "${PROJECT_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc")\n',
        "",
        "TensorFlow's wheel lacks the headers that this file includes",
    ),
    *(
        Edit(
            f"horovod/tensorflow/keras/{file}",
            "from keras import backend as K",
            "K = keras.backend",
            "the backend must be the one of the Keras in use, but the package `keras` is always Keras 3",
        )
        for file in ("__init__.py", "callbacks.py")
    ),
)

ENVIRONMENT = {
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITHOUT_NVTX": "1",
    "LDFLAGS": "-Wl,--strip-debug",
    "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
}

_BUILD_OPTIONS = ("HOROVOD_GPU", "HOROVOD_CUDA", "HOROVOD_NCCL", "HOROVOD_ROCM")
"""Variables that a user may set for the build, e.g. HOROVOD_GPU_OPERATIONS=NCCL."""


def apply_edits(source: Path) -> None:
    """Apply all changes to the unpacked source.

    Raises:
        HorovodBuildError: a change does not apply exactly once, so this is another source.
    """
    for edit in EDITS:
        file = source / edit.file
        text = file.read_text()
        if (found := text.count(edit.old)) != 1:
            raise HorovodBuildError(
                f"{edit.file} has {edit.old.strip()!r} {found} times instead of once. This is not the source of Horovod "
                f"{VERSION} that the changes were made for"
            )
        file.write_text(text.replace(edit.old, edit.new))


def installed_frameworks() -> dict[str, str]:
    """The versions of torch and TensorFlow in this environment, without importing them."""
    found = {}
    for name in FRAMEWORKS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def local_version(frameworks: Mapping[str, str]) -> str:
    """The part after the ``+`` in the version of a build: the frameworks, and a hash of this recipe.

    Example:
        >>> local_version({"torch": "2.13.0+cpu"}).rpartition(".")[0]
        'torch2.13.0.cpu'
    """
    options = {name: value for name, value in os.environ.items() if name.startswith(_BUILD_OPTIONS)}
    recipe = json.dumps([[(edit.file, edit.old, edit.new) for edit in EDITS], ENVIRONMENT, options])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    names = [name + re.sub(r"[^0-9a-z]+", ".", version.lower()) for name, version in sorted(frameworks.items())]
    return ".".join([*names, f"r{digest}"])


def wanted_version(frameworks: Mapping[str, str]) -> str:
    """The version of Horovod that fits these frameworks.

    Example:
        >>> wanted_version({"tensorflow": "2.21.0"}).startswith("0.28.1+tensorflow2.21.0.r")
        True
    """
    return f"{VERSION}+{local_version(frameworks)}"


def installed_version() -> str | None:
    """The version of Horovod in this environment."""
    try:
        return metadata.version("horovod")
    except metadata.PackageNotFoundError:
        return None
