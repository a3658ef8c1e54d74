"""One good file of each format, and who has to be stated for it."""

import json

from tests.leaderboard.importers import shapes

WHO = {"scaffold": "Loop", "submitted_at": "2026-01-05"}
MODEL = {"scaffold": "Loop", "model": "M"}
NAMED = WHO | {"model": "M"}


def hal():
    return shapes.hal(passed=["a", "b"], failed=["c"])


def terminal_bench():
    trials = [shapes.tb_trial("a", True), shapes.tb_trial("b", False), shapes.tb_trial("c", None)]
    return {"id": "b", "results": trials, "n_resolved": 1}


def harbor():
    return shapes.harbor_trial("a", {"reward": 1.0})


def swe_bench():
    return shapes.swe_report(resolved=["a"], unresolved=["b"], error=["c"], infra_failure_ids=["c"])


def inspect():
    return shapes.inspect_log([shapes.inspect_sample("a", value="C"), shapes.inspect_sample("b", value=0.5)])


def lm_eval():
    return [shapes.lm_sample(0, 1.0), shapes.lm_sample(1, 0.0), shapes.lm_sample(0, 1.0, filter="loose")]


def helm():
    typos = {"name": "typos"}
    return [shapes.helm_entry("a", {"em": 1.0}), shapes.helm_entry("a", {"em": 0.0}, perturbation=typos)]


# Format → name of the file, what stands in it, what is stated, how many rows it has.
FILES = {
    "hal": ("x_UPLOAD.json", hal, {}, 3),
    "terminal-bench": ("results.json", terminal_bench, NAMED, 3),
    "harbor": ("result.json", harbor, {}, 1),
    "swe-bench": ("m.run.json", swe_bench, NAMED, 3),
    "inspect": ("log.json", inspect, {}, 2),
    "lm-eval": (f"samples_gsm8k_{shapes.DATE}.jsonl", lm_eval, MODEL, 2),
    "helm": ("per_instance_stats.json", helm, NAMED, 2),
}


def text_of(name, content):
    """As the file is written: one object a line for lm-eval."""
    if name == "lm-eval" and isinstance(content, list):
        return "".join(f"{json.dumps(line)}\n" for line in content)
    return json.dumps(content)


def put(folder, name, content=None):
    """Write the good file of a format, or other content under its name; give path and what is stated."""
    file, make, stated, _ = FILES[name]
    text = content if isinstance(content, str) else text_of(name, make() if content is None else content)
    return shapes.write(folder / file, text), stated
