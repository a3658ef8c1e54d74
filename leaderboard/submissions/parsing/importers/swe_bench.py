"""SWE-bench: the report of a run, `schema_version` 2.

Follows SWE-bench/SWE-bench 5.0.2, ``make_run_report`` (swebench/harness/reporting.py) and its
classification of failures (harness/infra_failure.py); reports of 2 to 4 have the same lists but for the
two of failures.

- Resolved is 1; unresolved, an empty patch and an error (mostly a patch that does not apply) are 0, as in
  SWE-bench's own score.
- `infra_failure_ids` and `ambiguous_failure_ids` name instances that failed by the environment, or perhaps
  so; they stand among the unresolved and the errors too. Both are invalid.
- `incomplete_ids` are those of the data set without a prediction. They are missing, as are tasks that the
  report does not know: the report divides by the data set of its run, a board by the tasks of its
  benchmark.
- The report says nothing of who ran it: the name of its file, ``MODEL.RUN.json``, has model and run, but
  with points in both nobody can tell where one ends.
- A prediction for an instance outside of the data set is in `submitted_ids` alone; it has no outcome.
"""

from collections.abc import Iterator

from leaderboard.submissions.parsing.importers.document import Node
from leaderboard.submissions.parsing.importers.importer import Carried, Importer, Reading, Run, Trial

OUTCOMES = {"resolved_ids": 1, "unresolved_ids": 0, "empty_patch_ids": 0, "error_ids": 0}
INVALID = {"infra_failure_ids": "infrastructure failure", "ambiguous_failure_ids": "ambiguous failure"}
VERSION = 2


def runs(reading: Reading) -> Iterator[Run]:
    for path in reading.among(_is_one, "*.json"):
        node = reading.object_at(path)
        if node is not None and _has_version(node):
            yield Run(Carried(node.file), list(_trials(node, reading)))


def _has_version(report: Node) -> bool:
    version = report.get("schema_version")
    if type(version.value) is not int or version.value != VERSION:
        version.fault(f"reports of version {VERSION} are read, with lists of ids")
        return False
    return True


def _trials(report: Node, reading: Reading) -> Iterator[Trial]:
    failed = {entry: reason for key, reason in INVALID.items() for entry in _ids(report.get(key))}
    first: dict[str, str] = {}
    for key, outcome in OUTCOMES.items():
        for entry in report.get(key).listed(required=True):
            if not isinstance(entry.value, str):
                entry.fault(f"an id is a text, not {entry.kind}")
                continue
            if entry.value in first:
                entry.fault(f"the instance stands at {first[entry.value]} too")
            if outcome and entry.value in failed:
                entry.fault("the instance is resolved, and stands among the failures of the environment")
            first.setdefault(entry.value, entry.where)
            reason = failed.pop(entry.value, None)
            yield Trial(
                entry,
                {
                    "task": entry.value,
                    "trial": 1,
                    "outcome": None if reason else outcome,
                    "valid": reason is None,
                    "reason": reason,
                },
            )
    for name in failed:
        report.fault(f"{name} stands among the failures of the environment, and nowhere else")
    _note(report, first, reading)


def _ids(node: Node) -> Iterator[str]:
    for entry in node.listed():
        if isinstance(entry.value, str):
            yield entry.value
        else:
            entry.fault(f"an id is a text, not {entry.kind}")


def _note(report: Node, told: dict[str, str], reading: Reading) -> None:
    without = {entry.value for entry in report.get("incomplete_ids").listed() if isinstance(entry.value, str)}
    submitted = {
        entry.value for entry in report.get("submitted_ids").listed() if isinstance(entry.value, str)
    }
    errors = report.get("error_ids").value if "infra_failure_ids" not in report.value else None
    for n, what in (
        (len(without - told.keys()), "Instances without a prediction, missing and not failed"),
        (len(submitted - told.keys()), "Predictions for no instance of the data set"),
        (
            len(errors) if isinstance(errors, list) else 0,
            "Errors, counted as failures: reports before 5.0 do not say whose they are",
        ),
    ):
        if n:
            reading.notes.append(f"{report.file}: {what}: {n:,}.")


def _is_one(name: str, keys: frozenset[str]) -> bool:
    return "resolved_ids" in keys or {"total_instances", "resolved_instances"} <= keys


IMPORTER = Importer(
    name="swe-bench",
    looked_for="a run report with schema_version 2, resolved_ids and unresolved_ids",
    files=("*.json",),
    is_one=_is_one,
    runs=runs,
    fields={"task": "", "outcome": ""},
)
