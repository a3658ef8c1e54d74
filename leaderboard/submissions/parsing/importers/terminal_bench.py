"""Terminal-Bench v1: a run's folder with ``results.json`` and ``run_metadata.json``, or a folder of such.

Follows laude-institute/terminal-bench 0.2.18, `RunMetadata`, `TrialResults` and `BenchmarkResults`
(terminal_bench/harness/models.py) as written by its harness (harness/harness.py).

- `is_resolved` is null where tests were not run or not understood (`failure_mode` says why): invalid. An
  agent's time-out leaves tests to run, so that it has true or false.
- `accuracy` counts null as a failure; it is ignored.
- `model_name` is null where the agent chose its model itself; `agent_name` is the scaffold.
- Runs come as copies and lie in each other's folders: people unpack archives into runs. A trial is known
  by its `id`, else by its name and run; met again it counts once, and with another result it is a fault.
- Folders of trials hold a ``results.json`` of their own, of another shape, which the run's repeats.
- A trial's number stands in its name, ``task.2-of-5.run``; after resuming, trials are not in order.
- Agents that do not count tokens write 0; that is nothing stated.
- A run that was resumed has another `uuid`, the same `run_id` and the same trials.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leaderboard.submissions.parsing.flat import head
from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial
from leaderboard.submissions.parsing.importers.document import Node, keys

METADATA, RESULTS = "run_metadata.json", "results.json"
NUMBER = re.compile(r"\.([0-9]{1,5})-of-[0-9]+\.")
TOKENS = {"n_input_tokens": "total_input_tokens", "n_output_tokens": "total_output_tokens"}


def runs(reading: ReadContext) -> Iterator[Run]:
    met: dict[str, tuple[str, tuple[str, Any]]] = {}  # where, and with what result
    n_again = 0
    for path in _results(reading):
        node = reading.object_at(path)
        if node is None or "results" not in node.value:
            continue  # of one trial
        metadata_path = reading.source.sibling(path, METADATA)
        metadata = reading.object_at(metadata_path) if metadata_path else None
        carried = _carried(node.file, metadata)
        if metadata is not None and (name := metadata.get("dataset_name").text()):
            named = f"{name} {metadata.get('dataset_version').text() or ''}".strip()
            note = f"The runs are of the benchmark {named}."
            if note not in reading.notes:
                reading.notes.append(note)
        results = list(node.get("results").objects(required=True))
        trials = list(_trials(results, carried.run, met))
        n_again += bool(results) and not trials
        yield carried, trials
    if n_again:
        reading.notes.append(f"Runs met twice, which count once: {n_again:,}.")


def _results(reading: ReadContext) -> list[Path]:
    """Where metadata say which folders are runs, the results beside them; else all that are called so."""
    source = reading.source
    if not source.is_folder:
        of_root = source.sibling(source.root, RESULTS) if source.root.name == METADATA else None
        return [of_root or source.root]
    folders = {path.parent for path in source.named(METADATA)}
    paths = [path for path in source.named(RESULTS) if path.parent in folders]
    if not folders:
        return source.named(RESULTS)
    for folder in sorted(folders - {path.parent for path in paths}):
        rule = f"the run has no {RESULTS}: it did not come to its end"
        reading.log.add(source.shown(folder / METADATA), "", rule)
    for path in source.named(RESULTS):
        of_trial = path.parent in folders or (len(path.parents) > 2 and path.parents[2] in folders)
        if not of_trial and "n_resolved" in keys(head(path)):
            reading.log.add(source.shown(path), "", f"the run has no {METADATA}, as others here have")
    return paths


def _carried(file: str, metadata: Node | None) -> Carried:
    if metadata is None:
        return Carried(file)
    return Carried(
        file=file,
        scaffold=metadata.get("agent_name").text(),
        model=metadata.get("model_name").text(),
        submitted_at=metadata.get("end_time").text() or metadata.get("start_time").text(),
        run=metadata.get("run_id").text(),
    )


def _trials(
    results: list[Node], run: str | None, met: dict[str, tuple[str, tuple[str, Any]]]
) -> Iterator[Trial]:
    """The trials that were not met before; one with another result than before is a fault."""
    n_of_task = Counter[str]()
    for place, trial in enumerate(results):
        task, name = str(trial.get("task_id").value), trial.get("trial_name").value
        n_of_task[task] += 1
        number = NUMBER.search(name) if isinstance(name, str) else None
        identity = trial.get("id").value
        if not isinstance(identity, str):
            identity = f"{run} {name}" if isinstance(name, str) else f"{trial.file} {place}"
        where, result = f"{trial.where} of {trial.file}", (task, trial.get("is_resolved").value)
        first, first_result = met.setdefault(identity, (where, result))
        if first == where:
            yield trial, _columns(trial, int(number[1]) if number else n_of_task[task])
        elif first_result != result:
            trial.fault(f"is the trial at {first}, with another result")


def _columns(trial: Node, number: int) -> dict[str, object]:
    resolved = trial.get("is_resolved")
    if not isinstance(resolved.value, bool | None):
        resolved.fault(f"must be true, false or null, not {resolved.kind}")
    valid = isinstance(resolved.value, bool)
    columns: dict[str, object] = {
        "task": trial.get("task_id").value,
        "trial": number,
        "outcome": int(resolved.value) if valid else None,
        "valid": valid,
        "reason": None if valid else trial.get("failure_mode").text(),
    }
    return columns | {column: trial.get(key).value or None for column, key in TOKENS.items()}


IMPORTER = Importer(
    name="terminal-bench",
    looked_for="a folder with run_metadata.json and results.json, or such a results.json",
    files=(METADATA, RESULTS),
    is_one=lambda name, keys: bool(
        "results.trial_name" in keys
        or {"results", "n_resolved"} <= keys
        or {"run_id", "agent_name", "n_concurrent_trials"} <= keys
    ),
    runs=runs,
    fields={
        "task": "task_id",
        "trial": "trial_name",
        "outcome": "is_resolved",
        "valid": "is_resolved",
        **TOKENS,
    },
)
