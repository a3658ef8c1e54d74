"""A picture as PNG for sites that show no SVG: bars and discs on paper, without a library and without words.

PNG (RFC 2083): eight bits a sample, three samples a pixel, every row with filter 0, in one compressed block.
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from leaderboard.plots.marks import PAINT

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2  # the colour type


class Canvas:
    """A picture of a width and height in pixels; what is drawn later lies on top."""

    def __init__(self, width: int, height: int, *, fill: str = "paper") -> None:
        self._pixels = np.empty((height, width, 3), dtype=np.uint8)
        self._pixels[:] = _rgb(fill)

    def bar(self, x: float, y: float, width: float, height: float, *, fill: str) -> None:
        """A bar with round ends."""
        radius = height / 2
        ends = (x + radius, x + width - radius)
        for end in ends:
            self.disc(end, y + radius, radius, fill=fill)
        left, right = (round(end) for end in ends)
        self._pixels[round(y) : round(y + height), left:right] = _rgb(fill)

    def disc(self, x: float, y: float, radius: float, *, fill: str) -> None:
        """A pixel on the edge takes as much of the colour as about lies inside."""
        height, width = self._pixels.shape[:2]
        top, bottom = max(0, int(y - radius) - 1), min(height, int(y + radius) + 2)
        left, right = max(0, int(x - radius) - 1), min(width, int(x + radius) + 2)
        down, across = np.ogrid[top:bottom, left:right]
        away = np.hypot(down + 0.5 - y, across + 0.5 - x)
        inside = np.clip(radius + 0.5 - away, 0, 1)[..., None]
        part = self._pixels[top:bottom, left:right]
        part[:] = np.rint(part + inside * (_rgb(fill) - part.astype(float))).astype(np.uint8)

    def png(self) -> bytes:
        height, width = self._pixels.shape[:2]
        rows = np.zeros((height, 1 + width * 3), dtype=np.uint8)
        rows[:, 1:] = self._pixels.reshape(height, width * 3)
        head = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
        return (
            SIGNATURE
            + _chunk(b"IHDR", head)
            + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
            + _chunk(b"IEND", b"")
        )


def _rgb(name: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(PAINT[name][1:]), dtype=np.uint8)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
