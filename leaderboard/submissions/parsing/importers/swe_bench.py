"""SWE-bench: the report of a run, `schema_version` 2, or the reports of its instances in the logs.

Follows SWE-bench/SWE-bench 5.0.2, ``make_run_report`` (swebench/harness/reporting.py), ``get_eval_report``
(harness/grading.py) and its classification of failures (harness/infra_failure.py); reports of 2 to 4 have the
same lists but for the two of failures.

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
- Logs lie in ``logs/run_evaluation/RUN/MODEL/INSTANCE/``: a ``report.json`` with the one instance, and
  ``run_instance.log``. A log without a report is an error, and 0. An empty patch leaves no folder: it is
  missing. RUN labels the run; MODEL is its model, which writes ``__`` for a slash.
- Where the report of a run lies in the same folder, it counts, and the reports of instances do not.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial, trial
from leaderboard.submissions.parsing.importers.document import Node, names_of

OUTCOMES = {"resolved_ids": 1, "unresolved_ids": 0, "empty_patch_ids": 0, "error_ids": 0}
INVALID = {"infra_failure_ids": "infrastructure failure", "ambiguous_failure_ids": "ambiguous failure"}
VERSION = 2
REPORT, LOG = "report.json", "run_instance.log"
LOGS = "run_evaluation"


def runs(reading: ReadContext) -> Iterator[Run]:
    of_instances = dict[Path, list[Trial]]()
    n_runs = n_left = 0
    for path in sorted(reading.among(_is_one, "*.json"), key=lambda path: path.name == REPORT):
        if n_runs and path.name == REPORT:
            n_left += 1
        elif (node := reading.object_at(path)) is not None:
            if any(isinstance(entry, dict) and "resolved" in entry for entry in node.value.values()):
                of_instances[path.parent] = list(_of_instance(node))
            elif type(node.value.get("schema_version")) is not int or node.value["schema_version"] != VERSION:
                rule = f"reports of version {VERSION} are read, with lists of ids"
                node.get("schema_version").fault(rule)
            else:
                n_runs += 1
                yield Carried(node.file), list(_trials(node, reading))
    if n_left:
        reading.notes.append(
            f"Reports of single instances, left alone beside the reports of runs: {n_left:,}."
        )
    if not n_runs:
        yield from _runs_in_logs(of_instances, reading)


def _of_instance(report: Node) -> Iterator[Trial]:
    for name in report.value:
        entry = report.get(name)
        resolved = entry.get("resolved")
        if not isinstance(resolved.value, bool):
            resolved.fault(f"must be true or false, not {resolved.kind}")
        elif entry.get("infra_failure").value:
            yield trial(entry, name, 1, None, INVALID["infra_failure_ids"])
        elif not resolved.value and entry.get("infra_failure_reason").value:
            yield trial(entry, name, 1, None, INVALID["ambiguous_failure_ids"])
        else:
            yield trial(entry, name, 1, int(resolved.value))


def _runs_in_logs(of_instances: dict[Path, list[Trial]], reading: ReadContext) -> Iterator[Run]:
    """One run for each folder of instances, which is one of a run and a model."""
    trials_by_run = defaultdict[Path, list[Trial]](list)
    for folder, trials in of_instances.items():
        trials_by_run[folder.parent] += trials
    failed = defaultdict[Path, list[str]](list)
    for path in reading.source.named(LOG) if trials_by_run else ():
        if path.parent not in of_instances:
            place = Node(None, reading.source.shown(path), "", reading.log)
            trials_by_run[path.parent.parent].append(trial(place, path.parent.name, 1, 0))
            failed[path.parent.parent].append(path.parent.name)
    for folder, trials in trials_by_run.items():
        *_, logs, run, model = ("", "", *folder.absolute().parts)
        if logs != LOGS:
            run = model = ""
        if names := failed[folder]:
            reading.notes.append(
                f"{run or reading.source.called}: Instances without a report, counted as failures as "
                f"SWE-bench does: {len(names):,} ({names_of(names)})."
            )
        models = (model.replace("__", "/"),) if model else ()
        yield Carried(trials[0][0].file, model=model or None, run=run or None, models=models), trials


def _trials(report: Node, reading: ReadContext) -> Iterator[Trial]:
    failed: dict[str, str] = {}
    for entry, reason in ((one, INVALID[key]) for key in INVALID for one in report.get(key).listed()):
        if isinstance(entry.value, str):
            failed[entry.value] = reason
        else:
            entry.fault(f"an id is a text, not {entry.kind}")
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
            why = failed.pop(entry.value, None)
            yield trial(entry, entry.value, 1, None if why else outcome, why)
    for name in failed:
        report.fault(f"{name} stands among the failures of the environment, and nowhere else")
    _note(report, first, reading)


def _note(report: Node, notes: dict[str, str], reading: ReadContext) -> None:
    without, submitted = (
        {entry.value for entry in report.get(key).listed() if isinstance(entry.value, str)}
        for key in ("incomplete_ids", "submitted_ids")
    )
    errors = report.get("error_ids").value if "infra_failure_ids" not in report.value else None
    for n, what in (
        (len(without - notes.keys()), "Instances without a prediction, missing and not failed"),
        (len(submitted - notes.keys()), "Predictions for no instance of the data set"),
        (
            len(errors) if isinstance(errors, list) else 0,
            "Errors, counted as failures: reports before 5.0 do not say whose they are",
        ),
    ):
        if n:
            reading.notes.append(f"{report.file}: {what}: {n:,}.")


def _is_one(name: str, keys: frozenset[str]) -> bool:
    is_of_instance = any(key.endswith(".patch_successfully_applied") for key in keys)
    return is_of_instance or "resolved_ids" in keys or {"total_instances", "resolved_instances"} <= keys


IMPORTER = Importer(
    name="swe-bench",
    looked_for="a run report with schema_version 2 and resolved_ids, or the report.json of an instance",
    files=("*.json",),
    is_one=_is_one,
    runs=runs,
    fields={"task": "", "outcome": ""},
    is_of_one_model=True,
)
