"""Who ran what: what the files carry and what was stated, put together, and nothing invented.

What neither says is asked for by name, all of it in one refusal. Where both say something and it differs,
what an operator states counts, with a note of both; of a delivery nothing is stored: who names another model
than the file has the wrong file.
"""

import re
from collections import Counter
from datetime import datetime

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import (
    MAX_FAULTS,
    Fault,
    FlatFile,
    Limits,
    check_records,
    excerpt,
    faulty_file,
    name_rule,
    printable,
)
from leaderboard.submissions.parsing.importers.base import Carried, ImportOptions, Run, Trial
from leaderboard.submissions.parsing.importers.document import IssueLog, names_of

WHO = ("agent", "scaffold", "model")
REQUIRED = (*WHO, "submitted_at")
OF_AGENT = ("version", "organisation", "weights")
OF_RUN = (*REQUIRED, "run", *OF_AGENT)
PLACEHOLDER: dict[str, str | None] = dict.fromkeys(WHO, "-")
ROW = re.compile(r"\brow (\d+)")


def with_columns(
    runs: list[Run], options: ImportOptions, called: str, notes: list[str]
) -> list[tuple[Run, dict[str, str | None]]]:
    faults = [
        Fault(None, field, excerpt(value), rule)
        for field in (*WHO, *OF_AGENT, "run")
        if (value := getattr(options, field)) is not None and (rule := name_rule(value))
    ]
    if faults:
        raise faulty_file(called, faults)
    others = {field: _other_names(field, [carried for carried, _ in runs], options) for field in WHO}
    if options.is_strict:
        _refuse_others(others, options, called)
    for field, name, n in ((field, *pair) for field, names in others.items() for pair in names.items()):
        counts = f'{field}: "{excerpt(getattr(options, field))}" counts, as {options.place(field)} states'
        notes.append(f'{counts}; {n:,} {"run names" if n == 1 else "runs name"} "{excerpt(name)}".')
    columns = [
        {field: getattr(options, field) or getattr(carried, field, None) for field in OF_RUN}
        for carried, _ in runs
    ]
    for one in columns:
        if not one["agent"] and one["scaffold"] and one["model"]:
            one["agent"] = f"{one['scaffold']} ({one['model']})"
    _ask([carried.file for carried, _ in runs], columns, options, called)
    # One label cannot stand for several runs of an agent: their trials would be the same
    agents = [one["agent"] for one in columns]
    if options.run is not None and len(set(agents)) < len(agents):
        rule = f"one label cannot stand for the {len(agents):,} runs in it; leave {options.place('run')} out"
        raise faulty_file(called, (Fault(None, "run", excerpt(options.run), rule),))
    return list(zip(runs, columns, strict=True))


def _other_names(field: str, carried: list[Carried], options: ImportOptions) -> Counter[str]:
    """The names in the files that differ from the stated one, each with the number of its runs."""
    own = getattr(options, field)
    names = (
        name
        for one in carried
        if (name := getattr(one, field)) and not (field == "model" and own in one.models)
    )
    return Counter(name for name in names if own not in (None, name))


def _refuse_others(others: dict[str, Counter[str]], options: ImportOptions, called: str) -> None:
    faults = []
    for field, name in ((field, name) for field, names in others.items() for name in names):
        rule = f'the file names {field} "{excerpt(name)}"; leave {options.place(field)} out if that is right'
        faults.append(Fault(None, field, excerpt(getattr(options, field)), printable(rule)))
    if faults:
        message = f"What was stated contradicts {called}. Nothing was stored."
        raise Faulty(message, faults=tuple(faults[:MAX_FAULTS]), n_faults=len(faults))


def _ask(files: list[str], columns: list[dict[str, str | None]], options: ImportOptions, called: str) -> None:
    """Refuse runs of which something is not known, and name all of it at once.

    An agent needs no name where scaffold and model are known; where neither is, all three are asked for.
    """
    lacking = {field for one in columns for field in REQUIRED[1:] if not one[field]}
    if lacking >= {"scaffold", "model"} and not all(one["agent"] for one in columns):
        lacking.add("agent")
    if lacking:
        listed = [field for field in REQUIRED if field in lacking]
        places = ", ".join(map(options.place, listed))
        faults = [
            Fault(None, field, None, f"is not in the file; state it with {options.place(field)}")
            for field in listed
        ]
        message = f"{called} does not carry {', '.join(listed)}; state what is lacking: {places}."
        named = [file for file, one in zip(files, columns, strict=True) if not all(one[f] for f in listed)]
        if (some := set(named)) < set(files):
            lack, it = ("lacks", "it") if len(some) == 1 else ("lack", "each")
            message = f"{names_of(some)} {lack} {', '.join(listed)}; load {it} by itself, with {places}."
        raise Faulty(message, faults=tuple(faults))


def checked(
    runs: list[tuple[Run, dict[str, str | None]]],
    log: IssueLog,
    *,
    called: str,
    fields: dict[str, str],
    benchmark: str,
    as_of: datetime,
    limits: Limits,
) -> FlatFile:
    """Put the rows of all runs through the rules of the flat file; faults name the place in the file."""
    records, trials = [], list[Trial]()
    for (carried, mine), of_run in runs:
        # One row tells what is wrong in all rows of a run, so that its faults are named once
        probe = {"submitted_at": None, **of_run, "task": "-", "trial": 1, "outcome": 1}
        found = check_records([probe], benchmark=benchmark, as_of=as_of)
        if not isinstance(found, FlatFile):
            for fault in found.faults:
                log.add(carried.file, fault.field or "", fault.rule, value=fault.value)
            of_run = PLACEHOLDER
        rest = {field: value for field, value in of_run.items() if value}
        # What stands once for an agent is said once: metadata are bounded
        once = {field: rest.pop(field) for field in OF_AGENT if field in rest}
        for i, trial in enumerate(mine):
            records.append({"submitted_at": None, **rest, **(once if i == 0 else {}), **trial[1]})
        trials += mine
    if not records:
        log.add("", "", "there is no outcome in it")
        raise faulty_file(called, log.faults, log.n)
    flat = check_records(records, benchmark=benchmark, as_of=as_of, limits=limits)
    if not isinstance(flat, FlatFile):
        for fault in flat.faults:
            _tell(fault, trials, log, fields)
        log.n += flat.n_faults - len(flat.faults)
    if log.n or not isinstance(flat, FlatFile):
        raise faulty_file(called, log.faults, log.n)
    return flat


def _tell(fault: Fault, trials: list[Trial], log: IssueLog, fields: dict[str, str]) -> None:
    def place(number: int) -> str:
        node = trials[number - 1][0]
        where = node.where or (f"line {node.row}" if node.row else "")
        return " of ".join(filter(None, (where, node.file if log.names_files else "")))

    rule = ROW.sub(lambda match: place(int(match[1])), fault.rule)
    if fault.row is None:
        log.add("", fault.field or "", rule, value=fault.value)
        return
    node = trials[fault.row - 1][0]
    field = fields.get(fault.field or "", fault.field or "")
    where = ".".join(filter(None, (node.where, field)))
    log.add(node.file, where, rule, value=fault.value, row=node.row)
