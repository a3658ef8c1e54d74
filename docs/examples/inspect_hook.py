"""Deliver every task that inspect_ai finishes to a Bandstand service.

Import this module where the evaluation is started (or name it as an `inspect_ai` entry point), and set

- BANDSTAND_SERVER and BANDSTAND_TOKEN, as for the command ``bandstand``;
- BANDSTAND_BENCHMARK, the benchmark's name in addresses;
- BANDSTAND_SCAFFOLD, the name of the harness; by default the solver's.

A sample's id is the task, its epoch the trial, its first score the outcome: C is 1, P 0.5, I and N 0, and a
number from 0 to 1 stays. A sample with an error is a failure of the harness (`valid` false), and one without
such a score is refused before anything is sent. Without BANDSTAND_BENCHMARK the hook does nothing.
"""

import json
import logging
import os
from collections.abc import Iterator
from typing import Any

from anyio import to_thread
from inspect_ai.hooks import Hooks, TaskEnd, hooks
from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from bandstand_client import Client, Payload, token

logger = logging.getLogger(__name__)
VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


@hooks(name="bandstand", description="Delivers the outcomes of every finished task.")
class DeliverToBandstand(Hooks):
    """Submits at the end of each task."""

    def enabled(self) -> bool:
        """Work only where a benchmark is named."""
        return "BANDSTAND_BENCHMARK" in os.environ

    async def on_task_end(self, data: TaskEnd) -> None:
        """Deliver the outcomes of a task that ran to its end; those of a broken one are kept by its log."""
        log = data.log
        if log.status != "success":
            logger.warning("Nothing was delivered: the task ended with %s.", log.status)
            return
        if log.samples is None:  # an eval set hands out the head of the log
            log = read_eval_log(log.location)
        receipt = await to_thread.run_sync(deliver, log)  # other tasks go on meanwhile
        logger.info("Delivered as %s, which is %s.", receipt["id"], receipt["status"])


def deliver(log: EvalLog) -> dict[str, Any]:
    """Send what a log tells, and give the receipt."""
    client = Client(os.environ["BANDSTAND_SERVER"], token())
    delivery = Payload(json.dumps(submission_of(log)).encode())
    return client.submit(os.environ["BANDSTAND_BENCHMARK"], delivery)


def submission_of(log: EvalLog) -> dict[str, Any]:
    """Give the submission that a log tells of."""
    scaffold = os.environ.get("BANDSTAND_SCAFFOLD") or log.eval.solver or "inspect_ai"
    model = log.eval.model
    return {
        "agent": {"name": f"{scaffold} ({model})", "scaffold": scaffold, "model": model},
        "outcomes": list(outcomes_of(log)),
    }


def outcomes_of(log: EvalLog) -> Iterator[dict[str, Any]]:
    """Give an outcome for each sample and epoch."""
    for sample in log.samples or []:
        told: dict[str, Any] = {"task": str(sample.id), "trial": sample.epoch}
        if sample.error is not None:
            yield told | {"valid": False}
        else:
            yield told | {"outcome": outcome_of(sample)} | usage_of(sample)


def outcome_of(sample: EvalSample) -> float:
    """Give the first score of a sample as a number from 0 to 1."""
    scores = sample.scores or {}
    value = next((score.value for score in scores.values()), None)
    if isinstance(value, str) and value in VALUES:
        return VALUES[value]
    if isinstance(value, bool | int | float) and 0 <= value <= 1:
        return float(value)
    raise ValueError(f"sample {sample.id!r} has the score {value!r}: neither C, P, I, N nor from 0 to 1")


def usage_of(sample: EvalSample) -> dict[str, Any]:
    """Give the tokens and the time that a sample took, as far as the log tells."""
    told: dict[str, Any] = {}
    if sample.model_usage:
        told["n_input_tokens"] = sum(usage.input_tokens for usage in sample.model_usage.values())
        told["n_output_tokens"] = sum(usage.output_tokens for usage in sample.model_usage.values())
    if sample.working_time is not None:
        told["seconds_execution"] = sample.working_time
    return told
