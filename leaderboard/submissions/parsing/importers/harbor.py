"""Harbor: a job's folder with a ``result.json`` for each trial, or a folder of such.

Follows laude-institute/harbor 0.25.0, `TrialResult` (harbor/models/trial/result.py), its policy of errors
(models/trial/error_policy.py) and `JobResult` (models/job/result.py).

- A reward counts where every exception of the trial, its steps included, was the agent's own doing: its
  time or its tokens ran out, or it refused. So a reward counts even with a time-out of the agent.
- Any other exception voids the reward, and a trial without a reward has none to count: invalid. Harbor's
  own means count both as 0; they are ignored.
- Rewards have names. One that is called `reward` is taken, or the only one; else the metric has to be
  stated.
- A job's own ``result.json`` has another shape, and repeats its trials when the job has ended; a trial is
  known by its `id`, and met again it counts once, also where one job lies in another's folder.
- Names of trials are random. Within a job and task they are numbered by when they started.
- A model may have a provider; its name is taken without it. No model is named where the agent chose it
  itself.
- Tokens and costs of trials with several steps stand in the steps.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial
from leaderboard.submissions.parsing.importers.base import trial as row_of
from leaderboard.submissions.parsing.importers.document import Node, names_of

OF_AGENT = frozenset(
    {
        "AgentTimeoutError",
        "ContextWindowExceededError",
        "ContextLengthExceededError",
        "OutputTokenExceededError",
        "OutputLengthExceededError",
        "AgentSafetyRefusalError",
        "ContentPolicyViolationError",
    }
)
REWARD = "reward"
TOKENS = ("n_input_tokens", "n_output_tokens", "cost_usd")


def runs(reading: ReadContext) -> Iterator[Run]:
    """One run for each job and agent, its trials in order of their start."""
    of_run: dict[Carried, list[Node]] = defaultdict(list)
    met: dict[str, tuple[str, object]] = {}
    n_again = 0
    for trial in _trial_nodes(reading):
        identity = trial.get("id").text() or f"{trial.get('trial_name').value} {trial.file}"
        result = (trial.at("verifier_result", "rewards").value, trial.get("task_name").value)
        where, first = met.setdefault(identity, (f"{trial.file} {trial.where}", result))
        if where == f"{trial.file} {trial.where}":
            of_run[_carried(trial)].append(trial)
        elif first != result:
            trial.fault(f"is the trial of {where.strip()}, with another result")
        elif not trial.where:
            n_again += 1
    if n_again:
        reading.notes.append(f"Trials met twice, which count once: {n_again:,}.")
    for carried, trials in of_run.items():
        started = [at for trial in trials if (at := trial.get("started_at").text())]
        first = replace(carried, file=trials[0].file, submitted_at=min(started, default=None))
        yield first, list(_numbered(trials, reading.options.metric))


def _trial_nodes(reading: ReadContext) -> Iterator[Node]:
    """All trials: those with a file of their own, then those that stand in the result of a job."""
    jobs = []
    for path in reading.source.named("result.json"):
        node = reading.object_at(path)
        if node is None:
            continue
        if "task_name" in node.value:
            yield node
        elif "stats" in node.value:
            jobs.append(node)
        else:
            node.fault("is the result of neither a trial nor a job: it has no task_name and no stats")
    for job in jobs:
        yield from job.get("trial_results").objects()


def _carried(trial: Node) -> Carried:
    agent, model = trial.get("agent_info"), trial.at("agent_info", "model_info")
    name, provider = model.get("name").text(), model.get("provider").text()
    version = agent.get("version").text()
    return Carried(
        file="",
        scaffold=agent.get("name").text(),
        model=name or trial.at("config", "agent", "model_name").text(),
        version=None if version == "unknown" else version,
        run=trial.at("config", "job_id").text(),
        models=(f"{provider}/{name}",) if name and provider else (),
    )


def _numbered(trials: list[Node], metric: str | None) -> Iterator[Trial]:
    n_of_task: dict[str, int] = defaultdict(int)
    for one in sorted(trials, key=lambda one: [str(one.get(k).value) for k in ("started_at", "trial_name")]):
        task = one.get("task_name").value
        n_of_task[str(task)] += 1
        exceptions = [
            info.get("exception_type").text() or "an exception without a type"
            for place in (one, *one.get("step_results").objects())
            if (info := place.get("exception_info")).value is not None and info.is_object()
        ]
        voided = next((name for name in exceptions if name not in OF_AGENT), None)
        reward = _reward(one, metric) if voided is None else None
        reason = voided or (None if reward is not None else "no reward")
        totals = {name: _total(one, name) for name in TOKENS}
        yield row_of(one, task, n_of_task[str(task)], reward, reason, **totals)


def _reward(trial: Node, metric: str | None) -> float | None:
    rewards = trial.at("verifier_result", "rewards")
    if not rewards.value or not rewards.is_object():
        return None
    chosen = metric or (REWARD if REWARD in rewards.value else None)
    if chosen is None and len(rewards.value) == 1:
        chosen = next(iter(rewards.value))
    if chosen is None or chosen not in rewards.value:
        rewards.fault(f"which reward counts? There are {names_of(rewards.value)}; --metric names one")
        return None
    return rewards.get(chosen).number()


def _total(trial: Node, name: str) -> float | None:
    """A figure of the trial, or the sum over its steps; None where nothing states it."""
    if trial.get("agent_result").value is not None:
        return trial.at("agent_result", name).number()
    numbers = [step.at("agent_result", name).number() for step in trial.get("step_results").objects()]
    known = [value for value in numbers if value is not None]
    return sum(known) if known else None


IMPORTER = Importer(
    name="harbor",
    looked_for="a folder with a result.json for each trial (task_name, agent_info, verifier_result)",
    files=("result.json",),
    is_one=lambda name, keys: {"task_name", "trial_name"} <= keys or {"n_total_trials", "stats"} <= keys,
    runs=runs,
    fields={"task": "task_name", "outcome": "verifier_result.rewards", "valid": "verifier_result"},
)
