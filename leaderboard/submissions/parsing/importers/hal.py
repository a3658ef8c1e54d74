"""HAL: the ``…_UPLOAD.json`` of one run.

Follows princeton-pli/hal-harness, ``BaseBenchmark.process_results`` (hal/benchmarks/base_benchmark.py) and
the ``get_metrics`` of its benchmarks, as of 2025: ``config`` with agent_name, benchmark_name, date and
run_id; ``results`` with the lists successful_tasks and failed_tasks, and total_cost.

- A task in neither list is missing, not failed: only tasks with an answer are listed, and some benchmarks
  list a reward between 0 and 1 nowhere. What `accuracy` divides by is ignored.
- A task in both lists is a fault.
- `agent_name` is "Scaffold (Model)"; the model is the last pair of parentheses, which may hold others:
  "HAL Generalist Agent (Claude Haiku 4.5 (October 2025))".
- Costs are of the whole run. Each listed task bears an equal part.
- A run of inspect_ai may write its lists as null; there is no outcome in it then.
- With `prompt_sensitivity` the lists are of means over prompts: which prompt a task passed is not in them.
- The run under its `run_id` is one run of the agent; the same file twice counts once.
"""

import hashlib
import math
from collections.abc import Iterator

from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial
from leaderboard.submissions.parsing.importers.document import Node

LISTS = {"successful_tasks": 1, "failed_tasks": 0}


def runs(reading: ReadContext) -> Iterator[Run]:
    source = reading.source
    seen: set[bytes] = set()
    for path in source.named("*_UPLOAD.json"):
        file, data = source.shown(path), source.data(path)
        if (digest := hashlib.sha256(data).digest()) in seen:
            reading.notes.append(f"{file} is there twice and counts once.")
            continue
        seen.add(digest)
        node = reading.document_in(data, file)
        if node is None or not node.is_object():
            continue
        config, results = node.get("config"), node.get("results")
        if not (config.is_object() and results.is_object()):
            continue
        if config.get("prompt_sensitivity").value is True:
            rule = "the lists of tasks are of means over prompts; nothing says which"
            config.get("prompt_sensitivity").fault(rule)
            continue
        if benchmark := config.get("benchmark_name").text():
            reading.notes.append(f"{node.file} is of the benchmark {benchmark}.")
        yield carried(node.file, config), list(_trials(results))


def carried(file: str, config: Node) -> Carried:
    name = config.get("agent_name").text()
    scaffold, model = parts(name or "")
    arguments = config.get("agent_args")
    return Carried(
        file=file,
        agent=name,
        scaffold=scaffold,
        model=model or (arguments.get("model_name").text() if isinstance(arguments.value, dict) else None),
        version=config.get("agent_version").text(),
        submitted_at=config.get("date").text(),
        run=config.get("run_id").text(),
    )


def parts(name: str) -> tuple[str | None, str | None]:
    """Take "Scaffold (Model)" apart; None and None where the name is not written so."""
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[place], 0)
        if depth == 0:
            scaffold, model = name[:place].strip(), name[place + 1 : -1].strip()
            return (scaffold, model) if scaffold and model and name[-1] == ")" else (None, None)
    return None, None


def _trials(results: Node) -> Iterator[Trial]:
    cost, first = results.get("total_cost").value, dict[str, str]()
    n = sum(len(entries) for key in LISTS if isinstance(entries := results.get(key).value, list))
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost)
    of_each = {"cost_usd": cost / n} if is_number and n else {}
    for key, outcome in LISTS.items():
        for entry in results.get(key).listed(required=True):
            if isinstance(entry.value, bool) or not isinstance(entry.value, str | int):
                entry.fault(f"the name of a task is a text or a number, not {entry.kind}")
                continue
            task = str(entry.value)
            if task in first:
                entry.fault(f"the task stands at {first[task]} too")
            first.setdefault(task, entry.where)
            yield entry, {"task": task, "trial": 1, "outcome": outcome, **of_each}


IMPORTER = Importer(
    name="hal",
    looked_for="…_UPLOAD.json with config.agent_name and results.successful_tasks",
    files=("*_UPLOAD.json",),
    is_one=lambda name, keys: {"config.agent_name", "results"} <= keys or "results.successful_tasks" in keys,
    runs=runs,
    fields={"task": "", "cost_usd": "cost"},
)
