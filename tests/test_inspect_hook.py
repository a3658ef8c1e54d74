"""The hook for inspect_ai: a real evaluation with its mock model, delivered to a server of the test's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_client import Server

ROOT = Path(__file__).resolve().parents[1]
EVALUATION = """
import os
import sys
sys.path[:0] = [{root!r}, {examples!r}]
import inspect_hook
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

for settings in {settings!r}:
    os.environ.update(settings)
    answers = [ModelOutput.from_content("mockllm/model", text) for text in {answers!r}]
    for answer in answers:
        answer.usage = ModelUsage(input_tokens=7, output_tokens=1, total_tokens=8)
    samples = [Sample(id=f"t{{i}}", input="2 + 2?", target="4") for i in range(2)]
    task = Task(dataset=samples, solver=generate(), scorer=match(), epochs=2)
    model = get_model("mockllm/model", custom_outputs=answers, memoize=False)
    eval(task, model=model, display="none", log_dir={folder!r}, max_connections=1, max_samples=1)
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Of one evaluation without a benchmark, and of one for `toy` after it: what each asked."""
    folder = tmp_path_factory.mktemp("evaluated")
    with Server() as quiet, Server() as server:
        server.script = [(503, {}, {"Retry-After": "0"}), (201, {"id": "1f", "status": "accepted"})]
        told = {"BANDSTAND_BENCHMARK": "toy", "BANDSTAND_TOKEN": "bst_x", "BANDSTAND_SCAFFOLD": "Ada"}
        code = EVALUATION.format(
            root=str(ROOT),
            examples=str(ROOT / "docs" / "examples"),
            settings=[{}, told | {"BANDSTAND_SERVER": server.address}],
            answers=["4", "5", "4", "4"],
            folder=str(folder),
        )
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "BANDSTAND_SERVER": quiet.address},
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=120,
        )
        quiet.shutdown()
        server.shutdown()
    return quiet, server


@pytest.mark.slow
def test_a_finished_task_is_delivered(servers):
    _, server = servers
    assert [path for _, path, _, _ in server.asked] == ["/api/v1/benchmarks/toy/submissions"] * 2
    body = json.loads(server.asked[-1][3])
    assert body["agent"] == {"name": "Ada (mockllm/model)", "scaffold": "Ada", "model": "mockllm/model"}
    rows = sorted((row["task"], row["trial"], row["outcome"]) for row in body["outcomes"])
    assert [row[:2] for row in rows] == [("t0", 1), ("t0", 2), ("t1", 1), ("t1", 2)]
    assert sorted(row[2] for row in rows) == [0, 1, 1, 1]
    for row in body["outcomes"]:
        assert (row["n_input_tokens"], row["n_output_tokens"]) == (7, 1)
        assert row["seconds_execution"] >= 0


@pytest.mark.slow
def test_without_a_benchmark_it_does_nothing(servers):
    quiet, _ = servers
    assert quiet.asked == []
