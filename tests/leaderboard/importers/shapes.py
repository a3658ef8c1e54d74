"""Files as other projects write them, small; after their sources, which the importers name.

The samples of lm-eval were compared with what its own writer (0.4.13) puts into a folder.
"""

import json

STATED = {"scaffold": "Loop", "model": "M", "submitted_at": "2026-01-05"}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), encoding="utf-8")
    return path


def hal(
    *, passed=("t1",), failed=("t2",), agent="HAL Generalist Agent (Claude Haiku 4.5 (October 2025))", **more
):
    return {
        "config": {
            "agent_name": agent,
            "benchmark_name": "gaia",
            "date": "2026-01-05",
            "run_id": "gaia_1767571200",
            "agent_args": {"model_name": "anthropic/claude-haiku-4-5"},
            "run_command": "hal-eval",
            "prompt_sensitivity": False,
        }
        | more,
        "results": {
            "accuracy": 0.9,
            "successful_tasks": list(passed),
            "failed_tasks": list(failed),
            "total_cost": 3.0,
            "latencies": {},
        },
        "raw_eval_results": {"t1": {"score": 1.0}},
        "raw_logging_results": [],
        "total_usage": {},
        "total_cost": 3.0,
        "git_info": {"commit_hash": "abc"},
    }


def tb_trial(task, resolved, *, attempt=1, n=1, run="run-1", failure="unset", tokens=0):
    return {
        "id": f"{task}-{attempt}-{run}",
        "trial_name": f"{task}.{attempt}-of-{n}.{run}",
        "task_id": task,
        "instruction": "Do it.",
        "is_resolved": resolved,
        "failure_mode": failure,
        "parser_results": None,
        "recording_path": None,
        "total_input_tokens": tokens,
        "total_output_tokens": tokens,
        "trial_started_at": "2026-01-05T10:00:00+00:00",
        "trial_ended_at": "2026-01-05T10:01:00+00:00",
    }


def tb_run(folder, trials, *, run="run-1", model="anthropic/claude-4", agent="terminus-2", uuid="u-1"):
    """A run's folder: the results, the metadata, and one folder for each trial."""
    metadata = {
        "run_id": run,
        "uuid": uuid,
        "dataset_name": "terminal-bench-core",
        "dataset_version": "0.1.1",
        "output_path": "/tmp/runs",
        "agent_name": agent,
        "no_rebuild": False,
        "cleanup": True,
        "log_level": 20,
        "n_concurrent_trials": 4,
        "n_attempts": 1,
        "model_name": model,
        "start_time": "2026-01-05T10:00:00.123456+00:00",
        "end_time": "2026-01-05T11:00:00.123456+00:00",
    }
    write(folder / "run_metadata.json", metadata)
    for trial in trials:
        write(folder / trial["task_id"] / trial["trial_name"] / "results.json", trial)
    write(folder / "results.json", {"id": "b", "results": trials, "n_resolved": 1, "accuracy": 0.5})
    return folder


def harbor_trial(task, rewards, *, raised=None, number=1, job="j-1", model=True, started=None, **more):
    info = raised and {
        "exception_type": raised,
        "exception_message": "",
        "exception_traceback": "",
        "occurred_at": "2026-01-05T10:00:00Z",
    }
    return {
        "id": f"{job}-{task}-{number}",
        "task_name": task,
        "trial_name": f"{task}__x{number}",
        "trial_uri": "file:///jobs",
        "task_id": {"path": task},
        "source": "terminal-bench",
        "task_checksum": "c",
        "config": {"trial_name": f"{task}__x{number}", "job_id": job, "agent": {"name": "terminus-2"}},
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": "claude-opus-4-1", "provider": "anthropic"} if model else None,
        },
        "agent_result": {"n_input_tokens": 10, "n_cache_tokens": 2, "n_output_tokens": 5, "cost_usd": 0.25},
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "exception_info": info,
        "started_at": started or f"2026-01-05T10:0{number}:00Z",
        "finished_at": "2026-01-05T11:00:00Z",
        "step_results": None,
    } | more


def harbor_job(folder, trials, *, embedded=True):
    for trial in trials:
        write(folder / trial["trial_name"] / "result.json", trial)
    job = {
        "id": "j-1",
        "started_at": "2026-01-05T10:00:00Z",
        "n_total_trials": len(trials),
        "stats": {"n_completed_trials": len(trials), "evals": {}},
        "trial_results": trials if embedded else [],
    }
    write(folder / "result.json", job)
    return folder


def swe_report(**lists):
    names = ("completed", "incomplete", "empty_patch", "submitted", "resolved", "unresolved", "error")
    found = {f"{name}_ids": sorted(lists.pop(name, ())) for name in names}
    return {
        "total_instances": 500,
        "submitted_instances": len(found["submitted_ids"]),
        "resolved_instances": len(found["resolved_ids"]),
        **found,
        **lists,
        "schema_version": 2,
    }


def swe_instance(name, resolved, **more):
    tests = {"FAIL_TO_PASS": {"success": ["t.1"], "failure": []}}
    return {
        name: {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": resolved,
            "tests_status": tests,
        }
        | more
    }


def inspect_sample(task, epoch=1, *, value=None, scores=None, **more):
    found = {"match": {"value": value}} if scores is None else scores
    return {"id": task, "epoch": epoch, "input": "?", "target": "!", "scores": found} | more


def inspect_log(samples, *, status="success", **spec):
    return {
        "version": 2,
        "status": status,
        "eval": {
            "run_id": "r-1",
            "created": "2026-01-05T10:00:00+00:00",
            "task": "gaia",
            "solver": "basic_agent",
            "model": "openai/gpt-4o",
            "dataset": {},
            "config": {},
        }
        | spec,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "samples": list(samples),
    }


def lm_sample(doc, value, *, metric="exact_match", filter="strict-match", **more):
    return {
        "doc_id": doc,
        "doc": {"question": "2 + 2?"},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": "2 + 2?", "arg_1": {"until": []}}},
        "resps": [["4"]],
        "filtered_resps": ["4"],
        "filter": filter,
        "metrics": [metric],
        "doc_hash": "a",
        "prompt_hash": "b",
        "target_hash": "c",
        metric: value,
    } | more


DATE = "2026-01-05T10-00-00.123456"


def lm_folder(folder, tasks, *, model="org/model-x", date=DATE):
    """A run's folder as lm-eval names it, with the aggregated results beside the samples."""
    inside = folder / (model or "unnamed").replace("/", "__")
    for task, samples in tasks.items():
        text = "".join(f"{json.dumps(sample)}\n" for sample in samples)
        write(inside / f"samples_{task}_{date}.jsonl", text)
    results = {
        "results": {},
        "config": {"model": "hf", "model_args": {"pretrained": model}},
        "model_name": model,
    }
    write(inside / f"results_{date}.json", results)
    return folder


def helm_entry(instance, figures, *, trial=0, perturbation=None):
    """One entry; `figures` are means by metric, None for a figure that was computed of nothing."""
    stats = []
    for name, mean in figures.items():
        told = {"name": name, "split": "test"} | ({"perturbation": perturbation} if perturbation else {})
        stats.append(
            {"name": told, "count": int(mean is not None)} | ({} if mean is None else {"mean": mean})
        )
    entry = {"instance_id": instance, "train_trial_index": trial, "stats": stats}
    return entry | ({"perturbation": perturbation} if perturbation else {})


def helm_run(folder, entries, *, name="mmlu:subject=anatomy,model=openai_gpt2", model="openai/gpt2"):
    write(folder / "per_instance_stats.json", entries)
    spec = {"name": name, "adapter_spec": {"model": model, "temperature": 0.0}, "metric_specs": []}
    write(folder / "run_spec.json", spec)
    return folder
