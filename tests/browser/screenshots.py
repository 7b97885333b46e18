"""Pictures of pages, as small as they can be for a repository."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

__all__ = ["Screenshots"]

# Pages have few colours; charts look the same with so many.
_COLOURS = 128


@dataclass(frozen=True)
class Screenshots:
    """Takes pictures of a page, and keeps them in a folder by name."""

    page: Page
    folder: Path

    def take(self, name: str, settle_s: float = 0.0) -> Path:
        """Keep what the page shows now, or after a moment: of a canvas, nothing tells when it is painted."""
        self.page.wait_for_timeout(1000 * settle_s)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.png"
        picture = Image.open(io.BytesIO(self.page.screenshot(animations="disabled")))
        picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        return path
