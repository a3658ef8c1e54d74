"""Who ran what: what the files carry and what was stated, put together, and nothing invented.

What neither says is asked for by name, all of it in one refusal. Where both say something and it differs,
what an operator states counts, with a note of both; of a delivery nothing is stored: who names another model
than the file has the wrong file.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import (
    MAX_FAULTS,
    Fault,
    FlatFile,
    Limits,
    excerpt,
    faults_of,
    name_rule,
    printable,
    refused,
)
from leaderboard.submissions.parsing.importers.document import Told
from leaderboard.submissions.parsing.importers.importer import Carried, Run, Stated, Trial

WHO = ("agent", "scaffold", "model")
ASKED = (*WHO, "submitted_at")
OF_AGENT = ("version", "organisation")
OF_RUN = (*ASKED, "run", *OF_AGENT)
PLACEHOLDER: dict[str, str | None] = dict.fromkeys(WHO, "-")
ROW = re.compile(r"\brow (\d+)")


def settled(
    runs: Iterable[Run], stated: Stated, called: str, notes: list[str]
) -> list[tuple[Run, dict[str, str | None]]]:
    """Give each run with the columns that all its rows share."""
    found = list(runs)
    check_stated(stated, called)
    others = {field: _other_names(field, [run.carried for run in found], stated) for field in WHO}
    if stated.is_strict:
        _refuse_others(others, stated, called)
    notes += _notes_of_others(others, stated)
    columns = [_of_run(run.carried, stated) for run in found]
    _ask(columns, stated, called)
    _check_one_run(columns, stated, called)
    return list(zip(found, columns, strict=True))


def check_stated(stated: Stated, called: str) -> None:
    """Refuse what was stated and is no name."""
    faults = [
        Fault(None, field, excerpt(value), rule)
        for field in (*WHO, *OF_AGENT, "run")
        if (value := getattr(stated, field)) is not None and (rule := name_rule(value))
    ]
    if faults:
        raise refused(called, faults)


def _of_run(carried: Carried, stated: Stated) -> dict[str, str | None]:
    columns = {field: getattr(stated, field) or getattr(carried, field, None) for field in OF_RUN}
    if not columns["agent"] and columns["scaffold"] and columns["model"]:
        columns["agent"] = f"{columns['scaffold']} ({columns['model']})"
    return columns


def _other_names(field: str, carried: list[Carried], stated: Stated) -> Counter[str]:
    """The names in the files that differ from the stated one, each with the number of its runs."""
    said = getattr(stated, field)
    names = (
        name
        for one in carried
        if (name := getattr(one, field)) and not (field == "model" and said in one.models)
    )
    return Counter(name for name in names if said not in (None, name))


def _refuse_others(others: dict[str, Counter[str]], stated: Stated, called: str) -> None:
    faults = []
    for field, name in ((field, name) for field, names in others.items() for name in names):
        rule = f'the file names {field} "{excerpt(name)}"; leave {stated.place(field)} out if that is right'
        faults.append(Fault(None, field, excerpt(getattr(stated, field)), printable(rule)))
    if faults:
        message = f"What was stated contradicts {called}; nothing was stored."
        raise Faulty(message, faults=tuple(faults[:MAX_FAULTS]), n_faults=len(faults))


def _notes_of_others(others: dict[str, Counter[str]], stated: Stated) -> Iterator[str]:
    for field, name, n in ((field, *pair) for field, names in others.items() for pair in names.items()):
        counts = f'{field}: "{excerpt(getattr(stated, field))}" counts, as {stated.place(field)} states'
        yield f'{counts}; {n:,} {"run names" if n == 1 else "runs name"} "{excerpt(name)}".'


def _ask(columns: list[dict[str, str | None]], stated: Stated, called: str) -> None:
    """Refuse runs of which something is not known, and name all of it at once.

    An agent needs no name where scaffold and model are known; where neither is, all three are asked for.
    """
    lacking = {field for one in columns for field in ASKED[1:] if not one[field]}
    if lacking >= {"scaffold", "model"} and not all(one["agent"] for one in columns):
        lacking.add("agent")
    if lacking:
        listed = [field for field in ASKED if field in lacking]
        places = ", ".join(map(stated.place, listed))
        faults = [
            Fault(None, field, None, f"is not in the file; {stated.place(field)} states it")
            for field in listed
        ]
        raise Faulty(
            f"{called} does not carry {', '.join(listed)}; state what is lacking: {places}.",
            faults=tuple(faults),
        )


def _check_one_run(columns: list[dict[str, str | None]], stated: Stated, called: str) -> None:
    """One label cannot stand for several runs of an agent: their trials would be the same."""
    agents = [one["agent"] for one in columns]
    if stated.run is not None and len(set(agents)) < len(agents):
        rule = f"one label cannot stand for the {len(agents):,} runs in it; leave {stated.place('run')} out"
        raise refused(called, (Fault(None, "run", excerpt(stated.run), rule),))


def checked(
    runs: list[tuple[Run, dict[str, str | None]]],
    told: Told,
    *,
    called: str,
    fields: dict[str, str],
    benchmark: str,
    as_of: datetime,
    limits: Limits,
) -> FlatFile:
    """Put the rows of all runs through the rules of the flat file; faults name the place in the file."""
    records, trials = [], list[Trial]()
    for run, stated in runs:
        columns = _probed(run, stated, told, benchmark=benchmark, as_of=as_of)
        # What stands once for an agent is said once: metadata are bounded.
        once, rest = _parted(columns)
        for i, trial in enumerate(run.trials):
            records.append({**rest, **(once if i == 0 else {}), **trial.columns})
            trials.append(trial)
    if not records:
        told.add("", "", "there is no outcome in it")
        raise refused(called, told.faults, told.n)
    found = faults_of(records, benchmark=benchmark, as_of=as_of, limits=limits)
    if not isinstance(found, FlatFile):
        for fault in found.faults:
            _tell(fault, trials, told, fields)
        told.n += found.n_faults - len(found.faults)
    if told.n or not isinstance(found, FlatFile):
        raise refused(called, told.faults, told.n)
    return found


def _probed(
    run: Run, columns: dict[str, str | None], told: Told, *, benchmark: str, as_of: datetime
) -> dict[str, str | None]:
    """Check by one row what all rows of a run share, so that its faults are told once."""
    probe = {"submitted_at": None, **columns, "task": "-", "trial": 1, "outcome": 1}
    found = faults_of([probe], benchmark=benchmark, as_of=as_of)
    if isinstance(found, FlatFile):
        return columns
    for fault in found.faults:
        told.add(run.carried.file, fault.field or "", fault.rule, value=fault.value)
    return PLACEHOLDER


def _parted(columns: dict[str, str | None]) -> tuple[dict[str, str], dict[str, str | None]]:
    given = {field: value for field, value in columns.items() if value}
    once = {field: given.pop(field) for field in OF_AGENT if field in given}
    return once, {"submitted_at": None, **given}


def _tell(fault: Fault, trials: list[Trial], told: Told, fields: dict[str, str]) -> None:
    def place(number: int) -> str:
        node = trials[number - 1].place
        where = node.where or (f"line {node.row}" if node.row else "")
        return " of ".join(filter(None, (where, node.file if told.names_files else "")))

    rule = ROW.sub(lambda match: place(int(match[1])), fault.rule)
    if fault.row is None:
        told.add("", fault.field or "", rule, value=fault.value)
        return
    node = trials[fault.row - 1].place
    field = fields.get(fault.field or "", fault.field or "")
    where = ".".join(filter(None, (node.where, field)))
    told.add(node.file, where, rule, value=fault.value, row=node.row)
