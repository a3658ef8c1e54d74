"""Keeping texts under a name, and comparing them with what was kept."""

import difflib
import gzip
import hashlib
import json
import os
import re
from pathlib import Path

KEPT = Path(__file__).parent / "kept"
UNLIKE = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    (
        r"20(?:26-1[12]|2[7-9]|3)[-\d]*(?:T[\d:.]+(?:Z|\+00:00)?)?",
        "<today>",
    ),  # the clock's; all else is given
    (r"(?<=\": \")[\w+/]{42,}=*(?=\")", "<signature>"),
    (r"(?<=[?.])[0-9a-f]{12}(?=[.\"])", "<hash>"),
)


def plain(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, name in UNLIKE:
        text = re.sub(pattern, name, text)
    return text


def as_text(answer) -> str:
    """JSON, with what processors compute alike of each number."""
    return json.dumps(_rounded(answer), indent=1, sort_keys=True, ensure_ascii=False, default=str)


def _rounded(answer):
    if isinstance(answer, float):
        return float(f"{answer:.9g}")
    if isinstance(answer, dict):
        return {key: _rounded(value) for key, value in answer.items()}
    return [_rounded(value) for value in answer] if isinstance(answer, list | tuple) else answer


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check(name: str, found: dict[str, str]) -> None:
    """Compare with what is kept under a name, or keep it where that was asked for."""
    path = KEPT / f"{name}.json.gz"
    found = {key: plain(text) for key, text in found.items()}
    if os.environ.get("GOLDEN") == "write":
        KEPT.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(as_text(found).encode(), mtime=0))
        return
    kept = json.loads(gzip.decompress(path.read_bytes()))
    assert sorted(found) == sorted(kept)
    changed = {key: "\n".join(difference(kept[key], found[key])) for key in kept if kept[key] != found[key]}
    told = "\n".join(f"{key}:\n{text[:2000]}" for key, text in changed.items())
    assert not changed, f"{len(changed)} of {len(kept)} outputs of {name} changed:\n{told[:20_000]}"


def difference(before: str, after: str) -> list[str]:
    lines = [re.split(r"(?<=[.>,]) |\n", text) for text in (before, after)]
    return list(difflib.unified_diff(*lines, "kept", "now", n=0, lineterm=""))
