"""``make soak``: a mixed load, the same under faults, every reader fuzzed; ends with 1 where anything failed.

``python -m tests.soak load|faults|fuzz|all MINUTES [READER …]``; docs/faults.md tells what it showed.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

PARTS = ("load", "faults", "fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=(*PARTS, "all"))
    parser.add_argument("minutes", type=float, help="of the load, of the faults, and of each reader")
    parser.add_argument("readers", nargs="*", help="which readers to fuzz (all)")
    asked = parser.parse_args()
    failed = False
    for part in PARTS if asked.part == "all" else (asked.part,):
        print(
            f"\n{part}, {asked.minutes:g} min, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}",
            flush=True,
        )
        for line, is_bad in lines_of(part, 60 * asked.minutes, asked.readers):
            print(line, flush=True)
            failed |= is_bad
    return int(failed)


def machine() -> str:
    one, five, _ = os.getloadavg()
    return f"{os.cpu_count()} processors, load average {one:.1f} (of five minutes {five:.1f})"


def lines_of(part: str, seconds: float, readers: list[str]) -> Iterator[tuple[str, bool]]:
    """What is printed, line by line, and whether it tells of a failure."""
    if part == "fuzz":
        yield from fuzzed(seconds, readers)
    else:
        yield from loaded(seconds, troubled=part == "faults")


def loaded(seconds: float, *, troubled: bool) -> Iterator[tuple[str, bool]]:
    from tests.soak.load import Found, lines

    yield from lines(Found(), seconds, troubled=troubled)


def fuzzed(seconds: float, readers: list[str]) -> Iterator[tuple[str, bool]]:
    """Each reader by each engine that is installed, which share the time."""
    from tests.soak.fuzz import ENGINES, HAS_ATHERIS, fuzz, names

    engines = ENGINES if HAS_ATHERIS else ENGINES[1:]
    for name in readers or names():
        for engine in engines:
            found = fuzz(name, seconds / len(engines), engine)
            told = f"{found.n_inputs:>9,} inputs in {found.seconds:>4.0f} s, peak {found.peak_mib:>4.0f} MiB"
            yield (
                f"  {name:<14} {engine:<10} {told}  {'FAILED' if found.failure else 'ok'}",
                bool(found.failure),
            )
            if found.failure:
                yield found.failure, True


if __name__ == "__main__":
    sys.exit(main())
