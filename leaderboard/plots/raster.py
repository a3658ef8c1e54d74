"""A picture as PNG for sites that show no SVG: bars and discs on paper, without a library and without words.

The picture is drawn at twice its size and halved, which smooths its edges. PNG (RFC 2083): eight bits a
sample, three samples a pixel, every row with filter 0, in one compressed block.
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from leaderboard.plots.paint import PAINT

FINER = 2  # `_halved` takes the mean of so many squared
SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2  # the colour type


class Canvas:
    """A picture of a width and height in pixels; what is drawn later lies on top."""

    def __init__(self, width: int, height: int, *, fill: str = "paper") -> None:
        self._pixels = np.empty((height * FINER, width * FINER, 3), dtype=np.uint8)
        self._pixels[:] = _rgb(fill)

    def bar(self, x: float, y: float, width: float, height: float, *, fill: str) -> None:
        """A bar with round ends."""
        radius = height / 2
        left, right = (round(at * FINER) for at in (x + radius, x + width - radius))
        top, bottom = round(y * FINER), round((y + height) * FINER)
        self._pixels[top:bottom, left:right] = _rgb(fill)
        for end in (x + radius, x + width - radius):
            self.disc(end, y + radius, radius, fill=fill)

    def disc(self, x: float, y: float, radius: float, *, fill: str) -> None:
        rows, columns = self._pixels.shape[:2]
        top, bottom = max(0, int((y - radius) * FINER)), min(rows, int((y + radius) * FINER) + 2)
        left, right = max(0, int((x - radius) * FINER)), min(columns, int((x + radius) * FINER) + 2)
        down, across = np.ogrid[top:bottom, left:right]
        away = (down + 0.5 - y * FINER) ** 2 + (across + 0.5 - x * FINER) ** 2
        self._pixels[top:bottom, left:right][away <= (radius * FINER) ** 2] = _rgb(fill)

    def png(self) -> bytes:
        pixels = self._halved()
        height, width = pixels.shape[:2]
        rows = np.zeros((height, 1 + width * 3), dtype=np.uint8)
        rows[:, 1:] = pixels.reshape(height, width * 3)
        head = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
        return (
            SIGNATURE
            + _chunk(b"IHDR", head)
            + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
            + _chunk(b"IEND", b"")
        )

    def _halved(self) -> NDArray[np.uint8]:
        """The mean of each four."""
        parts = [self._pixels[down::FINER, across::FINER] for down in (0, 1) for across in (0, 1)]
        total = parts[0].astype(np.uint16)
        for part in parts[1:]:
            total += part
        return (total >> 2).astype(np.uint8)


def _rgb(name: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(PAINT[name][1:]), dtype=np.uint8)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
