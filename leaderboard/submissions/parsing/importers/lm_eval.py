"""lm-eval: the sample files of a run, ``samples_TASK_DATE.jsonl``, or a folder of such.

Follows EleutherAI/lm-evaluation-harness 0.4.13: the samples of lm_eval/evaluator.py as written by
`EvaluationTracker.save_results_samples` (lm_eval/loggers/evaluation_tracker.py).

- The samples do not say of which task they are; the name of their file does, and the date of the run. The
  task of a row is that task and the sample's `doc_id`: ``gsm8k/17``.
- A task may read each answer by several filters, and then has a line for each. The first of the file
  counts, or the one that was stated; which, is told. Files before 0.4.5 name no filter, and their lines
  repeat then: a fault.
- Of several metrics the first that is a number counts, or the one that was stated. A metric of a whole
  corpus (BLEU, perplexity) has a list in each sample, which is no outcome.
- "N/A" stands where a metric does not apply: there is no outcome, and nothing is missing. NaN and null are
  a metric that failed: invalid.
- ``results_DATE.json`` beside it has `model_name`. Where no model is named there, lm-eval makes a name up;
  it counts only if it stands in the model's arguments. Nothing says what the scaffold is.
- Repeats of a sample are folded by the filter; a run has one trial.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial, trial
from leaderboard.submissions.parsing.importers.document import Node, lines, names_of

NAME = re.compile(
    r"samples_(?P<task>.+)_(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]+)?)"
    r"\.jsonl(?:\.gz)?"
)
ONLY = "none"  # the filter of a task without any
NOT_METRICS = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
    | {"doc_hash", "prompt_hash", "target_hash"}
)
NOT_APPLICABLE = "N/A"

Counted = tuple[str, str, tuple[str, ...]]  # metric, filter, other filters


def runs(reading: ReadContext) -> Iterator[Run]:
    of_run: dict[tuple[Path, str], list[tuple[str, Path]]] = defaultdict(list)
    for path in reading.source.named("samples_*.jsonl", "samples_*.jsonl.gz"):
        name = path.name if reading.source.is_folder else Path(reading.source.called).name
        if match := NAME.fullmatch(name):
            of_run[path.parent, match["date"]].append((match["task"], path))
        else:
            rule = "the name of the file says task and date: samples_TASK_2026-01-31T12-00-00.jsonl"
            reading.log.add(reading.source.shown(path), "", rule)
    counted: dict[Counted, list[str]] = defaultdict(list)
    for (_, date), files in of_run.items():
        trials = [trial for task, path in files for trial in _trials(task, path, reading, counted)]
        first, model = files[0][1], None
        results_path = reading.source.sibling(first, f"results_{date}.json")
        results = reading.object_at(results_path) if results_path else None
        if results is not None and (model_name := results.get("model_name").text()):
            arguments = json.dumps(results.at("config", "model_args").value, ensure_ascii=False)
            model = model_name if model_name in arguments else None
        yield Carried(reading.source.shown(first), model=model, submitted_at=date[:10], run=date), trials
    for (metric, taken, others), tasks in counted.items():
        others_text = f" (also there: {', '.join(others)}; --filter names another)" if others else ""
        reading.notes.append(f"{names_of(tasks)}: {metric} counts, by the filter {taken}{others_text}.")


def _trials(task: str, path: Path, reading: ReadContext, counted: dict[Counted, list[str]]) -> list[Trial]:
    source, options = reading.source, reading.options
    of_filter: dict[str, list[Trial]] = {}
    metric, n_without = options.metric, 0
    for sample in lines(source.data(path), source.shown(path), reading.log, n_bytes=source.limits.n_bytes):
        metric = metric or _first_metric(sample)
        trials = of_filter.setdefault(sample.get("filter").text() or ONLY, [])
        if sample.get(metric or "").value == NOT_APPLICABLE:
            n_without += 1
        else:
            number = sample.get("doc_id")
            if isinstance(number.value, bool) or not isinstance(number.value, int | str):
                number.fault(f"a number is expected, not {number.kind}")
            outcome, valid = _outcome(sample, metric)
            place = Node(None, sample.file, "", sample.log, sample.row)
            trials.append(trial(place, f"{task}/{number.value}", 1, outcome, None if valid else "no metric"))
    taken = _taken(of_filter, options.filter, source.shown(path), reading)
    others = tuple(sorted(of_filter.keys() - {taken}))
    counted[metric or "nothing", taken, others].append(task)
    if n_without:
        reading.notes.append(f"{task}: samples with {NOT_APPLICABLE}, which have no outcome: {n_without:,}.")
    return of_filter.get(taken, [])


def _taken(of_filter: dict[str, list[Trial]], chosen: str | None, file: str, reading: ReadContext) -> str:
    if chosen is None or len(of_filter) < 2:
        return next(iter(of_filter), ONLY)
    if chosen not in of_filter:
        reading.log.add(file, "filter", f"must be one of {names_of(of_filter)}", value=chosen)
    return chosen


def _first_metric(sample: Node) -> str | None:
    named = sample.get("metrics").value
    names = named if isinstance(named, list) else [name for name in sample.value if name not in NOT_METRICS]
    scalar = (str | int | float, type(None))
    metrics = [name for name in names if isinstance(name, str) and isinstance(sample.value.get(name), scalar)]
    return next(iter(metrics), None)


def _outcome(sample: Node, metric: str | None) -> tuple[object, bool]:
    if metric is None or metric not in sample.value:
        metrics = [name for name in sample.value if name not in NOT_METRICS]
        sample.fault(
            f"there is no {metric or 'metric that is a number'}; --metric names one of {names_of(metrics)}"
        )
        return None, True
    value = sample.get(metric)
    if value.is_missing:
        return None, False
    if isinstance(value.value, list | dict):
        value.fault(f"{value.kind} is no outcome of a sample; --metric names another metric")
        return None, True
    return int(value.value) if isinstance(value.value, bool) else value.value, True


IMPORTER = Importer(
    name="lm-eval",
    looked_for="samples_TASK_DATE.jsonl with doc_id, target and filtered_resps on each line",
    files=("samples_*.jsonl", "samples_*.jsonl.gz"),
    is_one=lambda name, keys: {"doc_id", "target"} <= keys and bool(keys & {"filtered_resps", "resps"}),
    runs=runs,
    fields={"task": "doc_id", "trial": "doc_id"},
)
