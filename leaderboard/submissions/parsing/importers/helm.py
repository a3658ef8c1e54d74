"""HELM: the ``per_instance_stats.json`` of a run, or a folder of runs.

Follows stanford-crfm/helm 0.5.16: `PerInstanceStats` (src/helm/benchmark/metrics/metric.py), `Stat`
(metrics/statistic.py) and the runner that writes them without what is None (runner.py).

- One instance has an entry for each metric that was computed, not one in all: entries of the same
  instance, perturbation and trial are put together.
- Which metric is the score stands in a schema that is no part of the run: it has to be stated, unless
  there is only one. The mean is taken; over one instance it is the value.
- The writer leaves out figures that are NaN. An instance that has others but not this one was not scored:
  invalid. So is one with a count of 0. Files of old versions have NaN itself.
- A perturbation (typos, dialects) is another prompt of the same task: a prompt variant.
- `train_trial_index` counts from 0; trials count from 1 here.
- ``run_spec.json`` beside it names model, temperature and scenario. Ids of instances begin anew in each
  scenario, so that where it is known the task is ``SCENARIO/ID``: the name of the run without its model.
  Nothing says when it ran, or what the scaffold is.
"""

from collections.abc import Iterator
from typing import Any

from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial, trial
from leaderboard.submissions.parsing.importers.document import Node, names_of

FILE, SPEC = "per_instance_stats.json", "run_spec.json"
OF_MODEL = ("model=", "model_deployment=")
N_NAMED = 20

Key = tuple[str, str | None, int]  # instance, perturbation, trial
Scored = tuple[Node, dict[str, Node]]  # where a trial stands first, and its figures by metric


def runs(reading: ReadContext) -> Iterator[Run]:
    source = reading.source
    for path in source.named(FILE):
        node = reading.document(path)
        spec_path = source.sibling(path, SPEC)
        spec = reading.object_at(spec_path) if spec_path else None
        if node is None:
            continue
        scored = _put_together(node)
        metric = _metric(node, scored, reading)
        scenario, colon, arguments = (spec.get("name").text() or "" if spec else "").partition(":")
        own = [one for one in arguments.split(",") if one and not one.startswith(OF_MODEL)]
        # What stands before the ids of a scenario
        shared = f"{scenario}{colon if own else ''}{','.join(own)}/" if scenario or colon else ""
        trials = [_trial(key, one, metric, shared, spec) for key, one in scored.items()] if metric else []
        model = spec.at("adapter_spec", "model").text() if spec else None
        alone = (model.partition("/")[2],) if model and "/" in model else ()
        yield Carried(source.shown(path), model=model, models=alone), trials


def _put_together(node: Node) -> dict[Key, Scored]:
    by_key: dict[Key, Scored] = {}
    for entry in node.objects(required=True):
        number = entry.get("train_trial_index").number()
        perturbation = entry.get("perturbation")
        variant = perturbation.get("name").text() if perturbation.value and perturbation.is_object() else None
        key = (str(entry.get("instance_id").text() or ""), variant, int(number or 0))
        _, figures = by_key.setdefault(key, (Node(None, entry.file, entry.where, entry.log), {}))
        for stat in entry.get("stats").objects(required=True):
            if (name := stat.at("name", "name").text()) is None:
                stat.at("name", "name").fault("a metric has a name")
                continue
            first = figures.setdefault(name, stat)
            if first is not stat and first.get("mean").value != stat.get("mean").value:
                stat.fault(f"{name} stands at {first.where} too, with another value")
    return by_key


def _metric(node: Node, scored: dict[Key, Scored], reading: ReadContext) -> str | None:
    """The metric that counts; None where that has to be stated first."""
    values: dict[str, list[Any]] = {}
    for name, stat in (pair for _, figures in scored.values() for pair in figures.items()):
        values.setdefault(name, []).append(stat.get("mean").value)
    chosen = reading.options.metric or (next(iter(values)) if len(values) == 1 else None)
    if chosen in values:
        return chosen
    if values:
        scores = {
            name
            for name, means in values.items()
            if all(isinstance(mean, int | float) and 0 <= mean <= 1 for mean in means)
        }
        shown = names_of(scores or values.keys(), N_NAMED)
        message = f"there is no {chosen}" if chosen else "which metric is the score?"
        node.log.add(node.file, "metric", f"{message} --metric names one of {shown}", value=chosen)
    return None


def _trial(key: Key, one: Scored, metric: str, shared: str, spec: Node | None) -> Trial:
    instance, variant, number = key
    stat = one[1].get(metric)
    mean = stat.get("mean") if stat else None
    is_scored = mean is not None and not mean.is_missing
    return trial(
        one[0],
        f"{shared}{instance}" if instance else None,
        number + 1,
        mean.value if mean and is_scored else None,
        None if is_scored else "not scored",
        prompt_variant=variant,
        temperature=spec.at("adapter_spec", "temperature").number() if spec else None,
    )


IMPORTER = Importer(
    name="helm",
    looked_for="per_instance_stats.json: a list with instance_id, train_trial_index and stats",
    files=(FILE,),
    is_one=lambda name, keys: {"instance_id", "stats", "train_trial_index"} <= keys,
    runs=runs,
    fields={"task": "instance_id", "trial": "train_trial_index", "outcome": "stats", "valid": "stats"},
)
