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
    faulty_file,
    name_rule,
    printable,
)
from leaderboard.submissions.parsing.importers.document import IssueLog
from leaderboard.submissions.parsing.importers.importer import (
    Carried,
    ImportedRun,
    ImportedTrial,
    ImportOptions,
)

WHO = ("agent", "scaffold", "model")
REQUIRED = (*WHO, "submitted_at")
OF_AGENT = ("version", "organisation")
OF_RUN = (*REQUIRED, "run", *OF_AGENT)
PLACEHOLDER: dict[str, str | None] = dict.fromkeys(WHO, "-")
ROW = re.compile(r"\brow (\d+)")


def with_columns(
    runs: Iterable[ImportedRun], options: ImportOptions, called: str, notes: list[str]
) -> list[tuple[ImportedRun, dict[str, str | None]]]:
    """Give each run with the columns that all its rows share."""
    all_runs = list(runs)
    check_options(options, called)
    others = {field: _other_names(field, [run.carried for run in all_runs], options) for field in WHO}
    if options.is_strict:
        _refuse_others(others, options, called)
    notes += _notes_of_others(others, options)
    columns = [_of_run(run.carried, options) for run in all_runs]
    _ask(columns, options, called)
    # One label cannot stand for several runs of an agent: their trials would be the same
    agents = [one["agent"] for one in columns]
    if options.run is not None and len(set(agents)) < len(agents):
        rule = f"one label cannot stand for the {len(agents):,} runs in it; leave {options.place('run')} out"
        raise faulty_file(called, (Fault(None, "run", excerpt(options.run), rule),))
    return list(zip(all_runs, columns, strict=True))


def check_options(options: ImportOptions, called: str) -> None:
    """Refuse what was stated and is no name."""
    faults = [
        Fault(None, field, excerpt(value), rule)
        for field in (*WHO, *OF_AGENT, "run")
        if (value := getattr(options, field)) is not None and (rule := name_rule(value))
    ]
    if faults:
        raise faulty_file(called, faults)


def _of_run(carried: Carried, options: ImportOptions) -> dict[str, str | None]:
    columns = {field: getattr(options, field) or getattr(carried, field, None) for field in OF_RUN}
    if not columns["agent"] and columns["scaffold"] and columns["model"]:
        columns["agent"] = f"{columns['scaffold']} ({columns['model']})"
    return columns


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
        message = f"What was stated contradicts {called}; nothing was stored."
        raise Faulty(message, faults=tuple(faults[:MAX_FAULTS]), n_faults=len(faults))


def _notes_of_others(others: dict[str, Counter[str]], options: ImportOptions) -> Iterator[str]:
    for field, name, n in ((field, *pair) for field, names in others.items() for pair in names.items()):
        counts = f'{field}: "{excerpt(getattr(options, field))}" counts, as {options.place(field)} states'
        yield f'{counts}; {n:,} {"run names" if n == 1 else "runs name"} "{excerpt(name)}".'


def _ask(columns: list[dict[str, str | None]], options: ImportOptions, called: str) -> None:
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
            Fault(None, field, None, f"is not in the file; {options.place(field)} states it")
            for field in listed
        ]
        raise Faulty(
            f"{called} does not carry {', '.join(listed)}; state what is lacking: {places}.",
            faults=tuple(faults),
        )


def checked(
    runs: list[tuple[ImportedRun, dict[str, str | None]]],
    log: IssueLog,
    *,
    called: str,
    fields: dict[str, str],
    benchmark: str,
    as_of: datetime,
    limits: Limits,
) -> FlatFile:
    """Put the rows of all runs through the rules of the flat file; faults name the place in the file."""
    records, trials = [], list[ImportedTrial]()
    for run, of_run in runs:
        columns = _probed(run, of_run, log, benchmark=benchmark, as_of=as_of)
        # What stands once for an agent is said once: metadata are bounded.
        once, rest = _parted(columns)
        for i, trial in enumerate(run.trials):
            records.append({**rest, **(once if i == 0 else {}), **trial.columns})
            trials.append(trial)
    if not records:
        log.add("", "", "there is no outcome in it")
        raise faulty_file(called, log.faults, log.n)
    faults = faults_of(records, benchmark=benchmark, as_of=as_of, limits=limits)
    if not isinstance(faults, FlatFile):
        for fault in faults.faults:
            _tell(fault, trials, log, fields)
        log.n += faults.n_faults - len(faults.faults)
    if log.n or not isinstance(faults, FlatFile):
        raise faulty_file(called, log.faults, log.n)
    return faults


def _probed(
    run: ImportedRun, columns: dict[str, str | None], log: IssueLog, *, benchmark: str, as_of: datetime
) -> dict[str, str | None]:
    """Check by one row what all rows of a run share, so that its faults are named once."""
    probe = {"submitted_at": None, **columns, "task": "-", "trial": 1, "outcome": 1}
    faults = faults_of([probe], benchmark=benchmark, as_of=as_of)
    if isinstance(faults, FlatFile):
        return columns
    for fault in faults.faults:
        log.add(run.carried.file, fault.field or "", fault.rule, value=fault.value)
    return PLACEHOLDER


def _parted(columns: dict[str, str | None]) -> tuple[dict[str, str], dict[str, str | None]]:
    filled = {field: value for field, value in columns.items() if value}
    once = {field: filled.pop(field) for field in OF_AGENT if field in filled}
    return once, {"submitted_at": None, **filled}


def _tell(fault: Fault, trials: list[ImportedTrial], log: IssueLog, fields: dict[str, str]) -> None:
    def place(number: int) -> str:
        node = trials[number - 1].place
        where = node.where or (f"line {node.row}" if node.row else "")
        return " of ".join(filter(None, (where, node.file if log.names_files else "")))

    rule = ROW.sub(lambda match: place(int(match[1])), fault.rule)
    if fault.row is None:
        log.add("", fault.field or "", rule, value=fault.value)
        return
    node = trials[fault.row - 1].place
    field = fields.get(fault.field or "", fault.field or "")
    where = ".".join(filter(None, (node.where, field)))
    log.add(node.file, where, rule, value=fault.value, row=node.row)
