"""Arguments and tables of a study."""

import argparse
from collections.abc import Sequence


def arguments(about: str | None, seed: int, n_draws: int) -> tuple[int, int]:
    """Read ``--seed`` and ``--draws``."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--seed", type=int, default=seed, help=f"from 0 on ({seed})")
    parser.add_argument(
        "--draws", type=int, default=n_draws, help=f"of each setting, from 2 on ({n_draws:,})"
    )
    given = parser.parse_args()
    if given.seed < 0 or given.draws < 2:
        parser.error(f"seed {given.seed}, {given.draws} draws: a seed is from 0 on, draws are from 2 on")
    return given.seed, given.draws


def print_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> None:
    """Print a title, columns as wide as they need to be (the first to the left), and notes below."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    print(f"\n{title}")
    for row in (head, *rows):
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *others]).rstrip(), flush=True)
    for note in notes:
        print(f"  {note}")
