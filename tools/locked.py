"""What a lock of ours pins: `requirements*.txt` as uv writes them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)(?: ; (.*?))?(?: \\)?$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
PROJECT = "bandstand"


@dataclass
class Pin:
    """One version of a library, `marker` where it is for some machines alone; `via` wants it."""

    name: str
    version: str
    marker: str = ""
    hashes: list[str] = field(default_factory=list)
    via: list[str] = field(default_factory=list)


def pins(lock: Path) -> list[Pin]:
    """In the order of the lock."""
    found: list[Pin] = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        if head := PIN.match(line):
            found.append(Pin(head[1], head[2], head[3] or ""))
        elif sha256 := HASH.search(line):
            found[-1].hashes.append(sha256[1])
        elif wanted := re.match(r"^ +#(?: via)? +([A-Za-z0-9._-]+)", line):
            found[-1].via.append(wanted[1].lower())
    return found
