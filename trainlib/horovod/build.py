"""Builds Horovod for the installed torch and TensorFlow, and installs it: ``python -m trainlib.horovod.build``.

It takes a few minutes. The wheel is cached under the versions that it was built for, so this happens once.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from filelock import FileLock
from rich.console import Console

from trainlib.errors import HorovodBuildError
from trainlib.horovod import _recipe as recipe

__all__ = ["build", "cache_folder", "cached_wheel", "ensure", "main"]

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Build and install. Returns the exit code."""
    try:
        ensure()
    except HorovodBuildError as error:
        Console(stderr=True, soft_wrap=True).print(f"Horovod: {error}", style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def ensure() -> None:
    """Install a Horovod that fits the installed frameworks, unless it is already there."""
    frameworks = recipe.installed_frameworks()
    if not frameworks:
        raise HorovodBuildError(
            "neither torch nor TensorFlow is installed. Run pip install 'trainlib[horovod,torch]' or 'trainlib[horovod,tensorflow]'"
        )
    wanted = recipe.wanted_version(frameworks)
    if recipe.installed_version() == wanted:
        return
    _install(cached_wheel(frameworks) or build(frameworks))
    console.print(f"Horovod {wanted} is installed")


def cache_folder(frameworks: Mapping[str, str]) -> Path:
    """The cache of the build for these frameworks, this Python and this platform."""
    base = os.environ.get("TRAINLIB_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "trainlib"
    )
    tag = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    return Path(base) / "horovod" / f"{recipe.wanted_version(frameworks)}-{tag}"


def cached_wheel(frameworks: Mapping[str, str]) -> Path | None:
    """The wheel of an earlier build, if there is one."""
    return next(cache_folder(frameworks).glob("*.whl"), None)


def build(frameworks: Mapping[str, str]) -> Path:
    """Build the wheel into the cache. Only one process builds; others wait for it."""
    _require_tools()
    folder = cache_folder(frameworks)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        if wheel := cached_wheel(frameworks):
            return wheel
        versions = " and ".join(f"{name} {version}" for name, version in frameworks.items())
        console.print(f"Building Horovod {recipe.VERSION} for {versions}. This takes a few minutes, once")
        # Not in the cache folder: Horovod's CMake files use the path of the source as a regular expression.
        with tempfile.TemporaryDirectory(prefix="horovod-") as scratch:
            source = _unpacked(Path(scratch))
            recipe.apply_edits(source)
            made = _compile(source, Path(scratch) / "wheel", frameworks, log=folder / "build.log")
            _require_libraries(made, frameworks)
            partial = Path(shutil.copy(made, folder / f"{made.name}.partial"))
            return partial.rename(folder / made.name)


def _require_tools() -> None:
    compiler = os.environ.get("CXX", "g++")
    missing = [tool for tool in (compiler, "make", "cmake") if shutil.which(tool, path=_path()) is None]
    if missing:
        raise HorovodBuildError(
            f"{' and '.join(missing)} not found, but needed for the build. On Debian or Ubuntu: apt-get install g++ make; "
            "pip install cmake"
        )


def _path() -> str:
    """The search path for programs. It starts with the folder of this Python, where pip puts cmake."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _unpacked(scratch: Path) -> Path:
    """The source, checked against its hash."""
    console.print("  downloading the source")
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"horovod=={recipe.VERSION} --hash=sha256:{recipe.SOURCE_SHA256}\n")
    _pip(
        *("download", "--require-hashes", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"),
        *("--dest", str(scratch), "-r", str(wanted)),
    )
    with tarfile.open(scratch / f"horovod-{recipe.VERSION}.tar.gz") as archive:
        archive.extractall(scratch)  # safe: pip has checked its hash
    return scratch / f"horovod-{recipe.VERSION}"


def _compile(source: Path, target: Path, frameworks: Mapping[str, str], log: Path) -> Path:
    started = time.monotonic()
    command = _pip_command("wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(target), str(source))
    with (
        open(log, "w") as file,
        subprocess.Popen(
            command,
            env=_environment(frameworks),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            _show_progress(process, file)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # with its compilers
            raise
    if process.returncode:
        tail = "\n".join(log.read_text().splitlines()[-20:])
        raise HorovodBuildError(
            f"the build failed. The last lines of its output:\n{tail}\nThe whole output is in {log}"
        )
    console.print(f"  built in {time.monotonic() - started:.0f} s")
    return next(target.glob("*.whl"))


def _require_libraries(wheel: Path, frameworks: Mapping[str, str]) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for framework in frameworks:
        if not any(name.startswith(recipe.LIBRARIES[framework]) for name in names):
            raise HorovodBuildError(
                f"the build has no library for {framework}. Its output is in {cache_folder(frameworks) / 'build.log'}"
            )


def _show_progress(process: subprocess.Popen[str], log: TextIO) -> None:
    """Copy the output to ``log``, and print the progress in steps of 10 %."""
    assert process.stdout is not None
    shown = -10
    for line in process.stdout:
        log.write(line)
        if (match := re.match(r"\s*\[\s*(\d+)%\]", line)) and int(match[1]) >= shown + 10:
            shown = int(match[1]) // 10 * 10
            console.print(f"  compiling {shown:3d} %")


def _environment(frameworks: Mapping[str, str]) -> dict[str, str]:
    # If this runs inside `make`, its flags must not reach the `make` of the build.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    for name, its_name in recipe.FRAMEWORKS.items():
        environment[f"HOROVOD_{'WITH' if name in frameworks else 'WITHOUT'}_{its_name.upper()}"] = "1"
    return {
        **environment,
        **recipe.ENVIRONMENT,
        "PATH": _path(),
        "MAKEFLAGS": f"-j{os.cpu_count() or 1}",
        "HOROVOD_LOCAL_VERSION": recipe.local_version(frameworks),
    }


def _install(wheel: Path) -> None:
    _pip("install", "--no-deps", "--force-reinstall", str(wheel))


def _pip(*arguments: str) -> None:
    done = subprocess.run(_pip_command(*arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        raise HorovodBuildError(f"pip {arguments[0]} failed:\n{(done.stderr or done.stdout).strip()}")


def _pip_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it cleans up as after Ctrl-C
    sys.exit(main())
