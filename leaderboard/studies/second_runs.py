"""An operator's own run of tasks drawn at random, held against what a submission says."""

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.rerun import RunAgreement as RunAgreement
from analytics.rerun import agreement, task_means
from leaderboard.catalog.models import Task
from leaderboard.errors import Refusal
from leaderboard.studies.answers import words
from leaderboard.studies.rules import draw_digest
from leaderboard.submissions.models import Setting, Submission
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.queries import outcomes_of

N_FEWEST = 20
N_NAMED = 5
CONDITIONS = ("prompt_variant", "judge", "temperature")
PASS_FAIL = (0.0, 1.0)


def drawn_tasks(submission: Submission, n: int) -> list[str]:
    """The first n tasks of its random order: the same at each call, and known to this installation alone."""
    return _drawn(submission, set(_trials(submission)[0].tolist()), n)


def compare_runs(submission: Submission, flat: FlatFile) -> RunAgreement:
    """Compare it with the operator's run, a file of one agent on the tasks drawn."""
    if len(flat.agents) != 1:
        raise Refusal(f"The file holds {len(flat.agents)} agents. Give one agent.", code="not_the_same_run")
    agent = submission.agent
    names = {agent.name, *agent.aliases.values_list("name", flat=True)}
    expected = (
        ("benchmark", flat.benchmark, {agent.benchmark.slug, agent.benchmark.title}, agent.benchmark.slug),
        ("agent", flat.agents[0], names, agent.name),
        ("scaffold", flat.scaffolds[0], {agent.scaffold.name}, agent.scaffold.name),
        ("model", flat.models[0], {agent.model.name}, agent.model.name),
    )
    _require_same(
        f"{column} {in_file!r} in the file, {own!r} submitted"
        for column, in_file, allowed, own in expected
        if in_file not in allowed
    )
    tasks, outcomes, settings = _trials(submission)
    first = task_means(tasks, outcomes)
    second = task_means(np.asarray(flat.tasks)[flat.task[flat.valid]], flat.outcome[flat.valid])
    drawn = _drawn(submission, first, max(len(second), N_FEWEST))
    if others := sorted(set(second).difference(drawn)):
        raise Refusal(
            f"Not drawn, but in the file: {words.first_names(others, N_NAMED)}. "
            f"Run the tasks that --draw {len(drawn)} names.",
            code="not_the_drawn_tasks",
        )
    if lacking := [task for task in drawn if task not in second]:
        raise Refusal(
            f"Drawn, but without a valid outcome in the file: {words.first_names(lacking, N_NAMED)}.",
            code="not_the_drawn_tasks",
        )
    _check_conditions(settings[np.isin(tasks, drawn)], flat)
    graded = flat.valid & ~np.isin(flat.outcome, PASS_FAIL)
    if graded.any() and np.isin(outcomes, PASS_FAIL).all():
        row = int(np.flatnonzero(graded)[0])
        raise Refusal(
            f"All submitted outcomes are 0 or 1; the file has {flat.outcome[row]:g} on task "
            f"{flat.tasks[flat.task[row]]}. Give each run as 0 or 1, or the mean of n runs with n_averaged.",
            code="not_the_same_run",
        )
    return agreement(np.array([first[task] for task in drawn]), np.array([second[task] for task in drawn]))


def _check_conditions(own: npt.NDArray[np.int32], flat: FlatFile) -> None:
    submitted = Setting.objects.filter(pk__in=np.unique(own).tolist())
    settings = [flat.settings[i] for i in np.unique(flat.setting[flat.valid])]
    differences = []
    for name in CONDITIONS:
        both = [{getattr(one, name) for one in rows} for rows in (settings, submitted)]
        if both[0] != both[1]:
            in_file, of_submission = (
                " and ".join(sorted("not stated" if one is None else repr(one) for one in values))
                for values in both
            )
            differences.append(f"{name} {in_file} in the file, {of_submission} submitted")
    _require_same(differences)


def _require_same(differences: Iterable[str]) -> None:
    if message := "; ".join(differences):
        raise Refusal(f"The file is of another run: {message}.", code="not_the_same_run")


def _drawn(submission: Submission, tasks: Collection[str], n: int) -> list[str]:
    if len(tasks) < max(n, N_FEWEST):
        raise Refusal(
            f"The submission has valid outcomes on {words.counted(len(tasks), 'active task')}; "
            f"{max(n, N_FEWEST)} are needed. Look at its logs instead, and verify it with --note.",
            code="too_few_tasks",
        )
    return sorted(tasks, key=lambda task: draw_digest("verify", f"{submission.uuid}:{task}"))[:n]


def _trials(submission: Submission) -> tuple[npt.NDArray[np.str_], FloatArray, npt.NDArray[np.int32]]:
    rows = outcomes_of([submission.pk])
    names = dict(
        Task.objects.filter(benchmark=submission.agent.benchmark, retired_at=None).values_list("pk", "name")
    )
    pks = rows["task"].to_numpy()
    is_shown = rows["valid"].to_numpy(zero_copy_only=False) & np.isin(pks, list(names))
    value, setting = (rows[name].to_numpy()[is_shown] for name in ("value", "setting"))
    return np.array([names[pk] for pk in pks[is_shown]]), value, setting
