"""What workers need on a machine that is not set up for them: code, packages, environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from trainlib._secrets import HiddenSecret, masked, require_no_password, without_secrets

__all__ = ["RuntimeEnv", "code_in"]

# What Ray can fetch and unpack.
_SCHEMES = ("s3", "gs", "https", "http", "azure", "abfss", "file", "gcs")
_ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.xz")


# Variables by which Python, or the system, finds what it loads.
_LOADING = ("PYTHON", "LD_", "DYLD_", "RAY_RUNTIME_ENV", "PATH")


def code_in(fields: Mapping[str, Any]) -> list[str]:
    """Which fields of a runtime_env bring code along, which workers then run.

    Example:
        >>> code_in({"pip": ["einops"], "py_modules": [], "env_vars": {"NCCL_DEBUG": "INFO", "PYTHONPATH": "/tmp"}})
        ['pip', 'env_vars.PYTHONPATH']
    """
    variables = fields.get("env_vars")
    named = (
        [name for name in variables if str(name).upper().startswith(_LOADING)] if isinstance(variables, Mapping) else []
    )
    return [
        *(name for name in ("pip", "working_dir", "py_modules") if fields.get(name)),
        *(f"env_vars.{name}" for name in named),
    ]


class RuntimeEnv(BaseModel):
    """What Ray gives the workers of a training besides what their nodes have. The fields are those of Ray's ``runtime_env``.

    Environment variables that are secret by their name, such as ``HF_TOKEN``, reach the workers only. They are masked where
    this is shown, and left out where it is saved.

    Example:
        >>> env = RuntimeEnv(pip=["einops==0.8.1"], env_vars={"HF_TOKEN": "hf_123", "TOKENIZERS_PARALLELISM": "false"})
        >>> print(env)
        pip=['einops==0.8.1'] env_vars={'HF_TOKEN': '********', 'TOKENIZERS_PARALLELISM': 'false'}
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True, hide_input_in_errors=True)

    pip: list[str] | None = Field(
        default=None,
        description="Packages that pip installs for the workers, on top of what their nodes have, e.g. ['einops==0.8.1']. In "
        "Python also the path of a requirements file.",
    )
    env_vars: dict[str, str] | None = Field(
        default=None, description="Environment variables of the workers, e.g. {'NCCL_DEBUG': 'INFO'}."
    )
    working_dir: str | None = Field(
        default=None,
        min_length=1,
        description="The folder, or the URI of an archive, that workers start in and import from. Default: on machines other "
        "than this one, a copy of the script's folder.",
    )
    py_modules: list[str] | None = Field(
        default=None, description="More packages and modules to send: paths of folders, .py files or wheels."
    )
    excludes: list[str] | None = Field(
        default=None, description="What is not sent, as in .gitignore, e.g. ['data/', '*.ckpt']."
    )

    @field_validator("pip", mode="before")
    @classmethod
    def _requirements_may_be_a_file(cls, value: Any) -> Any:
        if not isinstance(value, (str, os.PathLike)):
            return value
        try:
            lines = Path(value).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise ValueError(
                f"there is no requirements file at {str(value)[:200]!r} ({type(error).__name__}): pass the path of one, or a "
                "list of packages"
            ) from None
        return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]

    @field_validator("pip", "excludes")
    @classmethod
    def _no_empty_lines(cls, value: list[str] | None) -> list[str] | None:
        for each in value or ():
            if not each.strip() or not each.isprintable():
                raise ValueError(f"{each!r} is not a line of text: leave it out")
            require_no_password(each)
        return value

    @field_validator("env_vars")
    @classmethod
    def _a_system_accepts_them(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, text in (value or {}).items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(
                    f"{name!r} cannot be an environment variable: its name is empty, or it has '=' or NUL in it"
                )
        return value

    @field_validator("working_dir", "py_modules", mode="before")
    @classmethod
    def _paths_are_absolute(cls, value: Any) -> Any:
        if isinstance(value, list):
            return [_absolute(each) for each in value]
        return _absolute(value)

    @field_validator("working_dir")
    @classmethod
    def _is_a_folder(cls, value: str | None) -> str | None:
        if value is not None and _is_uri(value):
            _require_archive(value, _ARCHIVES)
        elif value is not None and not os.path.isdir(value):
            raise ValueError(f"there is no folder {value}: pass one, or the URI of an archive")
        return value

    @field_validator("py_modules")
    @classmethod
    def _exist(cls, value: list[str] | None) -> list[str] | None:
        for each in value or ():
            if _is_uri(each):
                _require_archive(each, (*_ARCHIVES, ".whl"))
            elif not os.path.isdir(each) and not (os.path.isfile(each) and each.endswith((".py", ".whl"))):
                raise ValueError(f"{each} is neither a folder nor a .py file nor a wheel")
        return value

    @field_serializer("env_vars", when_used="json")
    def _mask(self, value: dict[str, str] | None) -> Any:
        return masked(value)

    def __repr_args__(self) -> Any:
        for name in type(self).model_fields:
            if (value := getattr(self, name)) is not None:
                yield name, masked(value)

    def __getstate__(self) -> dict[Any, Any]:
        """What is saved, e.g. for ``restore``: everything but the secrets."""
        state = super().__getstate__()
        values = {**state["__dict__"], "env_vars": without_secrets(state["__dict__"]["env_vars"])}
        return {**state, "__dict__": values}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Secrets were not saved. Those that are in the environment of this process are taken from there."""
        super().__setstate__(state)
        for name, value in (self.env_vars or {}).items():
            if isinstance(value, HiddenSecret) and name in os.environ:
                self.env_vars[name] = os.environ[name]  # type: ignore[index]

    def require_secrets(self) -> None:
        """Raise an error if it was saved, and its secrets were not.

        Raises:
            ValueError: a variable has no value.
        """
        lost = [name for name, value in (self.env_vars or {}).items() if isinstance(value, HiddenSecret)]
        if lost:
            raise ValueError(
                f"{', '.join(lost)} in runtime_env's env_vars {'were' if len(lost) > 1 else 'was'} not saved, being secret. "
                "Set it in the environment of this process, or pass the runtime_env again."
            )

    def over(self, other: RuntimeEnv | None) -> RuntimeEnv:
        """Both in one. Where both set a field, or the same environment variable, this one wins.

        Example:
            >>> RuntimeEnv(pip=["a"]).over(RuntimeEnv(pip=["b"], env_vars={"X": "1"}))
            RuntimeEnv(pip=['a'], env_vars={'X': '1'})
        """
        if other is None:
            return self
        ours, theirs = self.as_dict(), other.as_dict()
        variables = {**theirs.get("env_vars", {}), **ours.get("env_vars", {})}
        update = {**theirs, **ours, **({"env_vars": variables} if variables else {})}
        return self.model_copy(update=update)

    def for_ray(self) -> dict[str, Any]:
        """What Ray itself gets. It writes that into its logs, so secrets are not among it: the worker sets those.

        Example:
            >>> RuntimeEnv(env_vars={"HF_TOKEN": "hf_123", "NCCL_DEBUG": "INFO"}).for_ray()
            {'env_vars': {'NCCL_DEBUG': 'INFO'}}
        """
        shown = {name: value for name, value in (self.env_vars or {}).items() if masked(value, name) == value}
        env = {**self.as_dict(), "env_vars": shown}
        return env if shown else {name: value for name, value in env.items() if name != "env_vars"}

    def as_dict(self) -> dict[str, Any]:
        """The fields that are set, with their secrets."""
        return {name: value for name, value in self if value}


def _absolute(value: Any) -> Any:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or not path or "\0" in path:
        return path
    return require_no_password(path) if _is_uri(path) else os.path.abspath(os.path.expanduser(path))


def _is_uri(path: str) -> bool:
    return "://" in path


def _require_archive(uri: str, suffixes: tuple[str, ...]) -> None:
    scheme, _, rest = uri.partition("://")
    if scheme == "local" and rest.startswith("/"):  # a folder that every node has
        return
    if scheme not in _SCHEMES or not rest.partition("?")[0].endswith(suffixes):
        raise ValueError(
            f"{uri[:200]!r} is not the URI of an archive ({', '.join(suffixes)}) that Ray can fetch ({', '.join(_SCHEMES)}), "
            "nor local:// with the path of a folder that every node has"
        )
