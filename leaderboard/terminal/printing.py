"""What commands print: faults as lines, a board and its studies as text."""

from functools import partial
from typing import Any

from leaderboard.boards.models import Board
from leaderboard.boards.queries import withdrawn_since
from leaderboard.called import set_command
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.queries import accounts_behind
from leaderboard.studies.answers import (
    Changes,
    Standings,
    Verdict,
    advice_text,
    as_text,
    averaged_over,
    printed,
    replay_figures,
    validated,
    verdict,
    words,
)
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy


def board_text(board: Board, standings: Standings, target: str) -> str:
    """Return the board for a target: what a file's own answer prints, under a head and over a digest."""
    head = f"{board.benchmark.title}: board {board.number}, {board.published_at:%Y-%m-%d}"
    n, n_agents, withdrawn = len(withdrawn_since([board]).get(board.pk, [])), len(standings.agents), ""
    if n == n_agents:
        withdrawn = "All outcomes were withdrawn since: the next board comes with the next outcomes."
    elif n:
        withdrawn = f"{n:,} of its {n_agents:,} agents {'was' if n == 1 else 'were'} withdrawn since."
    text = printed.text(standings, target, command=partial(set_command, board.benchmark.slug))
    parts = [head, withdrawn, text, advice(board.benchmark, standings.verdict)]
    return "\n\n".join([*filter(None, parts), f"Digest {board.digest}"])


def changes_text(older: Board, newer: Board, changes: Changes) -> str:
    head = f"{newer.benchmark.title}: what changed from board {older.number}, {older.published_at:%Y-%m-%d}"
    lists = [
        "\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in words.changed_lists(changes)
    ]
    text = words.changes_text(changes)
    return "\n\n".join([f"{head}, to {newer.number}, {newer.published_at:%Y-%m-%d}", text, *lists])


def validation_text(study: ValidationStudy) -> str:
    """The verdict, the figures of the replay, and those by protocol and strategy."""
    in_use = study.policy.strategy
    result = verdict(study.result, in_use)
    parts = [result.sentence, advice(study.benchmark, result)] if result else []
    if replayed := replay_figures(study.result):
        parts.append(as_text(replayed))
    return "\n\n".join([*filter(None, parts), as_text(validated.shown(study.result, in_use))])


def advice(benchmark: Benchmark, result: Verdict | None) -> str:
    """Name the command that changes the policy, where another strategy does better."""
    return advice_text(result, set_command(benchmark.slug, ["strategy={strategy}"]))


def variance_text(study: VarianceStudy) -> str:
    result = study.result
    if not result["available"]:
        return f"{study.benchmark}: no variance components: {result['reason']}."
    levels, averaged, groups = result["levels"], averaged_over(result), result.get("groups")
    if groups:
        drawn = "drawn in" if groups["role"] == "cluster" else "drawn within"
        drawn += f" {words.counted(groups['n_groups'], 'group')}"
    shown = as_text(
        {
            "outcomes": f"{result['n_rows']:,} of {words.counted(levels['agent'], 'agent')} on "
            f"{words.counted(levels['task'], 'task')}",
            "REML": f"{result['method']}; {result['message']}",
            "never measured": "; ".join(result["not_measured"]) or "nothing that is asked for",
            **({"tasks like these": groups["reason"] or drawn} if groups else {}),
            "\ncomponents": [_component(part) for part in result["components"]],
            f"\nstandard error of one agent's mean on all tasks{averaged and f', {averaged}'}, in points": [
                _step(step) for step in result["projections"]
            ],
        }
    )
    logit = result.get("logit") or {}
    scales = [logit["sentence"]] if logit.get("sentence") else []
    return "\n".join([shown, "", *result["advice"]["sentences"], *scales])


def _component(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": part["name"],
        "variance": part["variance"],
        "share": f"{words.percent(part['share'])}%",
        "": "at its boundary of 0" if part["boundary"] else "",
        "what it is": part["meaning"],
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    shown = {
        name: None if step[name] is None else f"±{words.percent(step[name])}" for name in ("finite", "domain")
    }
    return {
        "trials a task": step["n_trials"],
        "these tasks": shown["finite"],
        "tasks like these": shown["domain"],
    }


def drift_text(check: DriftCheck) -> str:
    """The state of each monitor, alerts first, with what to do, and how often they cry wolf."""
    result = check.result
    if result["reason"]:
        return f"{check.benchmark}: {result['reason']}."
    pace, order = result["false_alerts_a_year"], ("alert", "warn", "ok", "insufficient")
    monitors = sorted(result["monitors"], key=lambda one: order.index(one["state"]))
    return as_text(
        {
            "subset": f"version {result['subset']}, fixed on {result['fixed_on']}",
            "since": words.counted(result["n_later"], "agent"),
            "false alerts": "–" if pace is None else f"at most {pace:.2f} a year, if nothing changes",
            "\nmonitors": [
                {
                    "state": one["state"],
                    "monitor": one["name"],
                    "": one["reason"],
                    "what to do": one["advice"],
                    **(
                        {"accounts behind it": accounts_behind(check.subset, one)}
                        if check.subset and one["state"] in ("warn", "alert")
                        else {}
                    ),
                }
                for one in monitors
            ],
        }
    )
