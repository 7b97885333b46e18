"""What a run was begun with: whether another training may continue it, and what differs if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainlib._registry import tags

__all__ = ["Fingerprint"]


@dataclass(frozen=True)
class Fingerprint:
    """Digests of what is trained, with what, and on what. Each is the same in all processes."""

    function: str
    config: str
    data: str

    def tags(self) -> dict[str, str]:
        """The tags that keep it with a run."""
        return {tags.FUNCTION_DIGEST: self.function, tags.CONFIG_DIGEST: self.config, tags.DATA_DIGEST: self.data}

    def differences(self, run_tags: Mapping[str, str]) -> list[str]:
        """What differs from a run with these tags. A run of an older trainlib has no fingerprint, and differs in nothing.

        Example:
            >>> begun = Fingerprint("f1", "c1", "d1").tags()
            >>> Fingerprint("f1", "c2", "d2").differences(begun)
            ['config', 'data']
            >>> Fingerprint("f1", "c2", "d2").differences({})
            []
        """
        words = {tags.FUNCTION_DIGEST: "function", tags.CONFIG_DIGEST: "config", tags.DATA_DIGEST: "data"}
        return [words[tag] for tag, value in self.tags().items() if run_tags.get(tag, value) != value]
