"""What commands print: faults as lines, a board and its studies as text."""

from functools import partial
from textwrap import fill
from typing import Any

from leaderboard.boards.models import Board
from leaderboard.boards.queries import withdrawn_since
from leaderboard.called import PROGRAM, set_command
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.queries import accounts_behind
from leaderboard.studies.answers import (
    WIDTH,
    Changes,
    Standings,
    Verdict,
    advice_text,
    as_text,
    at_most,
    averaged_over,
    printed,
    replay_figures,
    validated,
    verdict,
    words,
)
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy

STATES = {"ok": "no change", "insufficient": "not enough data"}  # of monitors that neither warn nor alert


def board_text(board: Board, standings: Standings, target: str, *, explain: bool = False) -> str:
    """Return the board for a target: what a file's own answer prints, under a head."""
    head = f"{board.benchmark.title}: board {board.number}, published {board.published_at:%Y-%m-%d}"
    n, n_agents, withdrawn = len(withdrawn_since([board]).get(board.pk, [])), len(standings.agents), ""
    if n == n_agents:
        withdrawn = "All results were withdrawn since. The next results make the next board."
    elif n:
        withdrawn = f"{n:,} of {n_agents:,} agents {'was' if n == 1 else 'were'} withdrawn since."
    more = f"run: {PROGRAM} standings {board.benchmark.slug} --explain"
    command = partial(set_command, board.benchmark.slug)
    parts = [head, withdrawn, printed.text(standings, target, explain=explain, more=more, command=command)]
    if explain:
        parts += [advice(board.benchmark, standings.verdict), f"Digest {board.digest}"]
    return "\n\n".join(filter(None, parts))


def changes_text(older: Board, newer: Board, changes: Changes) -> str:
    head = f"{newer.benchmark.title}: what changed from board {older.number}, {older.published_at:%Y-%m-%d}"
    lists = [
        "\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in words.changed_lists(changes)
    ]
    text = words.changes_text(changes)
    return "\n\n".join([f"{head}, to {newer.number}, {newer.published_at:%Y-%m-%d}", text, *lists])


def validation_text(study: ValidationStudy, *, full: bool) -> str:
    """The verdict and the figures that decide; in full those of the replay and of every protocol."""
    in_use, slug = study.policy.strategy, study.benchmark.slug
    result = verdict(study.result, in_use)
    parts = [fill(text, 100) for text in (result.sentence, advice(study.benchmark, result))] if result else []
    if full:
        parts += [as_text(replay_figures(study.result)), as_text(validated.shown(study.result, in_use))]
    else:
        figures = validated.summary(study.result, in_use, more=f"run: {PROGRAM} validate {slug} --full")
        parts.append(as_text(figures, 100))
    return "\n\n".join(filter(None, parts))


def advice(benchmark: Benchmark, result: Verdict | None) -> str:
    """Name the command that changes the policy, where another strategy does better."""
    return advice_text(result, set_command(benchmark.slug, ["strategy={strategy}"]))


def variance_text(study: VarianceStudy) -> str:
    result = study.result
    if not result["available"]:
        return f"{study.benchmark}: the sources of error cannot be estimated: {result['reason']}."
    levels, averaged, groups = result["levels"], averaged_over(result), result.get("groups")
    if groups:
        drawn = "sampled as whole groups:" if groups["role"] == "cluster" else "sampled within"
        drawn += f" {words.counted(groups['n_groups'], 'group')}"
    shown = as_text(
        {
            "results": f"{result['n_rows']:,} from {words.counted(levels['agent'], 'agent')} on "
            f"{words.counted(levels['task'], 'task')}",
            "REML": f"{result['method']}; {result['message']}",
            "not measured": "; ".join(result["not_measured"]) or "nothing",
            **({"tasks like these": groups["reason"] or drawn} if groups else {}),
            "\ncomponents": [_component(part) for part in result["components"]],
            f"\nstandard error of one agent's mean on all tasks{averaged and f', {averaged}'}, in points": [
                _step(step) for step in result["projections"]
            ],
        }
    )
    logit = result.get("logit") or {}
    scales = [logit["sentence"]] if logit.get("sentence") else []
    sentences = [fill(one, WIDTH) for one in (*result["advice"]["sentences"], *scales)]
    return "\n".join([shown, "", *sentences])


def _component(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": part["name"],
        "variance": part["variance"],
        "share": f"{words.percent(part['share'])}%",
        "": "estimated as 0" if part["boundary"] else "",
        "what it is": part["meaning"],
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    shown = {name: None if step[name] is None else words.percent(step[name]) for name in ("finite", "domain")}
    return {
        "trials a task": step["n_trials"],
        "these tasks": shown["finite"],
        "tasks like these": shown["domain"],
    }


def drift_text(check: DriftCheck, *, full: bool) -> str:
    """The monitors that warn, with what to do, and the names of the others; in full the state of each."""
    result = check.result
    if result["reason"]:
        return f"{check.benchmark}: {result['reason']}."
    pace, order = result["false_alerts_a_year"], ("alert", "warn", "ok", "insufficient")
    monitors = sorted(result["monitors"], key=lambda one: order.index(one["state"]))
    loud = [one for one in monitors if one["state"] in ("alert", "warn")]
    quiet: dict[str, list[str]] = {}
    for one in () if full else monitors[len(loud) :]:
        quiet.setdefault(STATES[one["state"]], []).append(one["name"])
    return as_text(
        {
            "ranking tasks": f"version {result['subset']}, fixed on {result['fixed_on']}",
            "later agents": f"{result['n_later']:,}",
            "false alerts": "–" if pace is None else f"at most {at_most(pace)} a year if nothing changes",
            **{state: ", ".join(names) for state, names in quiet.items()},
            **({} if full else {"all monitors": f"run: {PROGRAM} drift {check.benchmark.slug} --full"}),
            **{
                f"\n{one['state']}: {one['name']}": {
                    "why": one["reason"],
                    "what to do": one["advice"],
                    **(
                        {"accounts behind it": behind}
                        if one in loud and check.subset and (behind := accounts_behind(check.subset, one))
                        else {}
                    ),
                }
                for one in (monitors if full else loud)
            },
        }
    )
