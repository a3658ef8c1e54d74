"""How many pairs of agents are tied, and who may be first: on real boards and the demonstration, by target.

Of each board and target the pairs that are tied, of all pairs of ranked agents, and how many agents may be
first. Run with ``python -m perf.studies.ties FOLDER [EARLIER.json] [--keep FILE.json]``: FOLDER holds the
flat files; counts that an earlier state of the project kept with ``--keep`` stand before those of this one.
Each file is answered by itself, with nothing decided or measured before; where agents that lack outcomes
leave fewer than half ranked, once more with what is missing counted as failures.
"""

import argparse
import datetime
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from analytics.flat_file import read
from analytics.record import Counting, Record
from leaderboard.studies.demonstration import write_history, write_newcomers
from selection.rules import Rules
from selection.schema.board import Standings
from selection.standings import answer

TARGETS = ("subset", "full", "domain")
NOW = datetime.datetime.now(datetime.UTC)
Counts = dict[str, dict[str, list[int]]]


def board(path: Path, rules: Rules) -> Standings:
    """Answer a file."""
    return answer(Record.from_flat(read(path, as_of=NOW), rules.counting), rules)


def demonstration(folder: Path, rules: Rules) -> Standings:
    """Answer the demonstration, its latest agents having run the subset alone."""
    history, new = folder / "history.csv", folder / "new.csv"
    write_history(history)
    subset = board(history, rules).subset
    write_newcomers(new, tasks=subset.tasks if subset else ())
    whole = folder / "demonstration.csv"
    whole.write_text(history.read_text() + new.read_text().split("\n", 1)[1])
    return board(whole, rules)


def boards(folder: Path) -> Iterator[tuple[str, Standings]]:
    """Yield all boards by name."""
    rules = Rules()
    for path in sorted(folder.glob("*.csv.gz")):
        name, found = path.name.removesuffix(".csv.gz"), board(path, rules)
        yield name, found
        if 2 * found.targets["full"].n_ranked < len(found.agents):
            yield f"{name}, as failures", board(path, Rules(counting=Counting(missing="zero")))
    with tempfile.TemporaryDirectory() as made:
        yield "demonstration", demonstration(Path(made), rules)


def counts(standings: Standings) -> dict[str, list[int]]:
    """Tied pairs, all pairs, agents that may be first, ranked agents; by target."""
    return {target: _counts(standings, target) for target in TARGETS if standings.targets[target].n_ranked}


def _counts(standings: Standings, target: str) -> list[int]:
    n = standings.targets[target].n_ranked
    ties = sum(last - first + 1 for line in standings.agents for first, last in line.at[target].tied_with)
    return [ties // 2, n * (n - 1) // 2, len(standings.targets[target].may_be_first), n]


def _row(name: str, target: str, now: list[int], earlier: list[int] | None) -> str:
    tied, pairs, first, n = now
    before = (earlier[0], earlier[2]) if earlier and earlier[1] == pairs else ("–", "–")
    return f"{name:<40}{target:<8}{n:>7}{pairs:>7}{before[0]:>8}{tied:>6}{before[1]:>15}{first:>6}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("earlier", type=Path, nargs="?")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    earlier: Counts = json.loads(given.earlier.read_text()) if given.earlier else {}
    found: Counts = {}
    print(f"{'':<40}{'':<8}{'':>7}{'tied':>13}{'may be first':>25}")
    print(f"{'board':<40}{'target':<8}{'ranked':>7}{'of':>7}{'before':>8}{'now':>6}{'before':>15}{'now':>6}")
    for name, standings in boards(given.folder):
        found[name] = counts(standings)
        for target, now in found[name].items():
            print(_row(name, target, now, earlier.get(name, {}).get(target)), flush=True)
    if given.keep:
        given.keep.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
