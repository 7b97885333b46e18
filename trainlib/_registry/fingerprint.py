"""What a run was begun with: whether another training may continue it, and what differs if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainlib._registry import tags

__all__ = ["Fingerprint"]

_MOST_SHOWN = 3


@dataclass(frozen=True)
class Fingerprint:
    """Digests of what is trained, with what, and on what. Each is the same in all processes."""

    function: str
    config: str
    data: str
    params: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The config as params of a run, to say what differs in it."""

    def tags(self) -> dict[str, str]:
        """The tags that keep it with a run."""
        return {tags.FUNCTION_DIGEST: self.function, tags.CONFIG_DIGEST: self.config, tags.DATA_DIGEST: self.data}

    def differences(self, run_tags: Mapping[str, str], run_params: Mapping[str, str]) -> list[str]:
        """What differs from a run with these tags and params. One of an older trainlib has no fingerprint: nothing does.

        Example:
            >>> begun = Fingerprint("f1", "c1", "d1").tags()
            >>> Fingerprint("f1", "c2", "d2", {"lr": "0.2", "width": "8"}).differences(begun, {"lr": "0.1", "width": "8"})
            ['config (lr was 0.1, and is 0.2)', 'data']
            >>> Fingerprint("f1", "c2", "d2").differences({}, {})
            []
        """
        words = {tags.FUNCTION_DIGEST: "function", tags.CONFIG_DIGEST: "config", tags.DATA_DIGEST: "data"}
        different = [words[tag] for tag, value in self.tags().items() if run_tags.get(tag, value) != value]
        changed = [
            f"{name} was {run_params[name]}, and is {value}"
            for name, value in sorted(self.params.items())
            if run_params.get(name, value) != value
        ]
        if not changed:
            return different
        detail = f"config ({'; '.join(changed[:_MOST_SHOWN])}{'; ...' if len(changed) > _MOST_SHOWN else ''})"
        return [detail if word == "config" else word for word in different]
