"""Every Eval Ever, schema 0.3.0: for each agent a JSON file of its results and a JSONL file of its trials.

`data/COLLECTION/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl`, as the schema's authors lay them out.
The schema knows models and no agents: the agent, its scaffold and its version are details of the model, and
of each trial. It asks for texts that are not here: prompts are empty, transcripts have no message. A trial
that the harness failed has an `error`; without a value it has no score, and is left out and counted.

Source: Every Eval Ever, EvalEval Coalition, `eval.schema.json` and `instance_level_eval.schema.json`.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.export.columns import FACETS
from leaderboard.submissions.export.outcomes import OutcomeRows

SCHEMA_VERSION = "0.3.0"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
UNKNOWN = "unknown"
ERROR = "the harness failed"
IN_WORDS = {"full": "all tasks", "subset": "the tasks of the subset", "domain": "tasks like these"}
OF_SCORE = ("rank", "rank_lower", "rank_upper", "estimated", "reason")
DETAILS = ("agent", "scaffold", "version", "submitted_at", "trial", "category", *FACETS, "cost_usd")
NO_LINE: Mapping[str, Any] = {"at": {}}
Row = Mapping[str, Any]
Line = Mapping[str, Any]


def write(folder: Path, outcomes: OutcomeRows, *, lines: Mapping[str, Line], as_of: datetime) -> None:
    """Write a benchmark into a folder; `lines` are those of its latest board, by agent."""
    about, agents = outcomes.snapshot.about, dict[str, _Agent]()
    for batch in outcomes.batches():
        written: dict[str, list[bytes]] = {}
        for row in batch.to_pylist():
            name = row["agent"]
            if name not in agents:
                agents[name] = _Agent(row, about, lines.get(name))
            agent = agents[name]
            if row["outcome"] is None:
                agent.n_left_out += 1
            else:
                written.setdefault(name, []).append(
                    json.dumps(_instance(row, agent, about), ensure_ascii=False).encode() + b"\n"
                )
        for name, parts in written.items():
            agents[name].append(folder, parts)
    for agent in agents.values():
        aggregate = _aggregate(agent, about, as_of)
        agent.path(folder, ".json").parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(aggregate, ensure_ascii=False, indent=2)
        agent.path(folder, ".json").write_text(f"{text}\n", encoding="utf-8")


class _Agent:
    """One agent's two files; the hash and the number of the lines written so far."""

    def __init__(self, row: Row, about: Benchmark, line: Line | None) -> None:
        self.name, self.scaffold, self.model = row["agent"], row["scaffold"], row["model"]
        self.version = row.get("version") or ""
        self.model_id = self.model if "/" in self.model.strip("/") else f"{UNKNOWN}/{self.model}"
        developer, _, rest = self.model_id.partition("/")
        # Nothing in a name leads elsewhere
        names = (UNSAFE.sub("_", text).strip("._") or UNKNOWN for text in (about.slug, developer, rest))
        self.place = "/".join(["data", *names])
        content = json.dumps([about.slug, about.data_version, self.name]).encode()
        self.uuid = UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)
        at_targets = (line or NO_LINE)["at"].items()
        self.results: Mapping[str, Any] = {target: at for target, at in at_targets if at["score"] is not None}
        self.digest = hashlib.sha256()
        self.n_lines = self.n_left_out = 0

    def path(self, folder: Path, end: str) -> Path:
        return folder / self.place / f"{self.uuid}{end}"

    @property
    def evaluation_id(self) -> str:
        return f"{self.place.split('/')[1]}/{self.model_id}/{self.uuid}"

    def append(self, folder: Path, parts: list[bytes]) -> None:
        path, content = self.path(folder, "_samples.jsonl"), b"".join(parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(content)
        self.digest.update(content)
        self.n_lines += len(parts)


# ------------------------------------------------------------------------------------------------ one trial


def _instance(row: Row, agent: _Agent, about: Benchmark) -> dict[str, Any]:
    read, wrote, tokens = row.get("n_input_tokens"), row.get("n_output_tokens"), None
    if read is not None and wrote is not None:  # the schema takes no half of it
        tokens = {"input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote}
    seconds = {name: str(row[name]) for name in row if name.startswith("seconds_") and row[name] is not None}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": agent.evaluation_id,
        "model_id": agent.model_id,
        "evaluation_name": about.title,
        **({"evaluation_result_id": _result_id(agent, "full")} if "full" in agent.results else {}),
        "sample_id": row["task"],
        "interaction_type": "agentic",
        "input": {"raw": "", "reference": []},
        "output": None,
        "messages": [],
        "answer_attribution": [],
        "evaluation": {"score": row["outcome"], "is_correct": row["outcome"] == 1},
        "token_usage": tokens,
        "performance": {"additional_details": seconds} if seconds else None,
        "error": None if row["valid"] else ERROR,
        "metadata": {name: str(row[name]) for name in DETAILS if row.get(name) is not None},
    }


# ---------------------------------------------------------------------------------------------- one agent


def _aggregate(agent: _Agent, about: Benchmark, as_of: datetime) -> dict[str, Any]:
    aggregate: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": agent.evaluation_id,
        "retrieved_timestamp": str(int(as_of.timestamp())),
        "source_metadata": {
            "source_name": about.title,
            "source_type": "evaluation_run",
            "source_organization_name": about.title,
            "evaluator_relationship": "other",
            "additional_details": _as_texts(
                licence=about.licence, citation=about.citation, data_version=about.data_version
            ),
        },
        "eval_library": {"name": "bandstand", "version": UNKNOWN},
        "model_info": {
            "name": agent.model,
            "id": agent.model_id,
            "additional_details": {
                "deployment_type": UNKNOWN,
                "model_availability": UNKNOWN,
                **_as_texts(agent=agent.name, scaffold=agent.scaffold, version=agent.version),
            },
        },
        "evaluation_results": list(_results(agent, about)),
    }
    if agent.n_lines:
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{agent.place}/{agent.uuid}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": agent.digest.hexdigest(),
            "total_rows": agent.n_lines,
            "additional_details": {"n_invalid_without_value": str(agent.n_left_out)},
        }
    return aggregate


def _results(agent: _Agent, about: Benchmark) -> Iterator[dict[str, Any]]:
    source = {"source_type": "url", "url": [about.url]} if about.url else {"source_type": "other"}
    for target, at in agent.results.items():
        yield {
            "evaluation_result_id": _result_id(agent, target),
            "evaluation_name": about.title,
            "source_data": {"dataset_name": about.title, **source},
            "metric_config": {
                "evaluation_description": f"Mean outcome on {IN_WORDS[target]}, from 0 to 1.",
                "metric_id": f"bandstand.{target}",
                "metric_kind": "pass_rate",
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 1,
            },
            "score_details": {
                "score": at["score"],
                "details": _as_texts(**{name: at[name] for name in OF_SCORE}),
                **_uncertainty(at),
            },
        }


def _uncertainty(at: Line) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {}
    if at["se"] is not None:
        uncertainty["standard_error"] = {"value": at["se"]} | _as_texts(method=at["method"])
    if at["lower"] is not None and at["upper"] is not None:
        interval = {"lower": at["lower"], "upper": at["upper"], "confidence_level": 0.95}
        uncertainty["confidence_interval"] = interval | _as_texts(method=at["source"] or at["method"])
    return {"uncertainty": uncertainty} if uncertainty else {}


def _result_id(agent: _Agent, target: str) -> str:
    return f"{agent.evaluation_id}/{target}"


def _as_texts(**texts: object) -> dict[str, str]:
    """What is stated, as text: the schema takes nothing else."""
    return {name: str(value) for name, value in texts.items() if value not in (None, "")}
