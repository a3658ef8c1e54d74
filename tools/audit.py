"""Look up every pinned version among known vulnerabilities: `make audit`.

``python tools/audit.py [--database FOLDER] [--address URL] [LOCK …]`` asks the database of OSV (osv.dev), or
a folder of its records (its export for PyPI, unpacked). Exit codes: 0 nothing is known, 1 something is, 2 the
database could not be asked: then nothing is known of the lock either way.
"""

import argparse
import json
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from locked import Pin, pins
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.txt", "requirements-extra.txt")
OSV = "https://api.osv.dev"
TIMEOUT = 30  # seconds
NOTHING, SOMETHING, NOT_ASKED = 0, 1, 2


class NotAsked(Exception):
    """The database could not be asked."""


def asked(address: str, locked: list[Pin]) -> list[list[str]]:
    """Ask the service for the ids of what is known of each."""
    queries = [{"package": {"name": pin.name, "ecosystem": "PyPI"}, "version": pin.version} for pin in locked]
    request = urllib.request.Request(
        f"{address}/v1/querybatch",
        json.dumps({"queries": queries}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            results = json.load(answer)["results"]
    except (OSError, ValueError, KeyError) as error:
        raise NotAsked(f"{address} could not be asked: {error}") from error
    if len(results) != len(locked):
        raise NotAsked(f"{address} answered {len(results)} of {len(locked)} questions")
    return [[one["id"] for one in result.get("vulns", [])] for result in results]


def looked_up(folder: Path, locked: list[Pin]) -> list[list[str]]:
    """Find the same in records on disk."""
    records = defaultdict(list)
    n = 0
    for path in sorted(folder.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        n += 1
        for affected in record.get("affected", []) if not record.get("withdrawn") else []:
            if affected.get("package", {}).get("ecosystem") == "PyPI":
                records[canonicalize_name(affected["package"]["name"])].append((record["id"], affected))
    if not n:
        raise NotAsked(f"{folder} holds no records")
    return [
        sorted(
            {key for key, affected in records[canonicalize_name(pin.name)] if is_hit(pin.version, affected)}
        )
        for pin in locked
    ]


def is_hit(version: str, affected: Mapping[str, Any]) -> bool:
    """Whether a record is about this version: it is listed, or lies in a range."""
    ranges = [one for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM"]
    return version in affected.get("versions", ()) or any(is_in(version, one["events"]) for one in ranges)


def is_in(version: str, events: Iterable[Mapping[str, str]]) -> bool:
    """Whether a version was introduced and neither fixed nor past the last that is affected."""
    at, hit = Version(version), False
    for event in sorted(events, key=lambda one: place(next(iter(one.values())))):
        [(what, when)] = event.items()
        if what == "introduced":
            hit = hit or at >= place(when)
        elif what == "fixed":
            hit = hit and at < place(when)
        elif what == "last_affected":
            hit = hit and at <= place(when)
    return hit


def place(text: str) -> Version:
    """Read a version; `0`, and what is none, comes before all others."""
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")


def main() -> int:
    """Print what is known, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("locks", nargs="*", default=LOCKS)
    parser.add_argument("--database", type=Path, help="a folder of OSV's records, in place of the service")
    parser.add_argument("--address", default=OSV, help=f"of a service that answers as OSV does ({OSV})")
    said = parser.parse_args()
    every = {(pin.name, pin.version): pin for lock in said.locks for pin in pins(ROOT / lock)}
    locked = list(every.values())
    try:
        known = looked_up(said.database, locked) if said.database else asked(said.address, locked)
    except NotAsked as error:
        print(f"{error}.\nNothing was checked.", file=sys.stderr)
        return NOT_ASKED
    for pin, ids in zip(locked, known, strict=True):
        for one in ids:
            print(f"{pin.name} {pin.version}: {one}, https://osv.dev/vulnerability/{one}")
    n = sum(map(len, known))
    print(f"{len(locked)} versions of {', '.join(said.locks)}: {n or 'no'} known vulnerabilities")
    return SOMETHING if n else NOTHING


if __name__ == "__main__":
    sys.exit(main())
