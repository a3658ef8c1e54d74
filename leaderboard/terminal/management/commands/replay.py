"""Feed a history through the service and compare with full evaluation."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations.replaying import Replayed, replay
from leaderboard.studies.answers import as_text, replay_figures, words
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.management.commands.load import check_slug, read
from leaderboard.terminal.printing import progress_bar, refusals_as_errors
from leaderboard.terminal.replay_page import replay_page


class Command(ServiceCommand):
    help = (
        "Feed a history through the service, agent by agent in order of date, in a private benchmark of its "
        "own, and report what was spared and how far its boards agree with full evaluation. The rules are "
        "those of SLUG where there is such a benchmark, else those of a new one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="whose rules are tried; need not exist")
        parser.add_argument("file", type=Path, help="a flat file of full runs with dates")
        parser.add_argument("--only", metavar="NAME", help="the benchmark to read, of a file of several")
        parser.add_argument(
            "--page", type=Path, metavar="FILE.html", help="write a page with plots that stands alone, too"
        )
        parser.add_argument("--json", action="store_true", help="print the report as one object")

    def handle(self, *, benchmark: str, file: Path, only: str | None, **options: Any) -> None:
        check_slug(benchmark)
        known = Benchmark.objects.filter(slug=benchmark).first()
        with refusals_as_errors():
            flat = read(file, only=only)
            with progress_bar("Replaying") as progress:
                done = replay(
                    flat=flat,
                    slug=benchmark,
                    policy=policy_in_force(known) if known else None,
                    progress=progress,
                )
        self.stdout.write(_json(done) if options["json"] else text(done))
        if page := options["page"]:
            command = f"manage.py replay {benchmark} {file.name}"
            page.write_text(replay_page(slug=benchmark, report=done.report, command=command))


def _json(done: Replayed) -> str:
    return json.dumps(done.report, indent=2, ensure_ascii=False)


def text(done: Replayed) -> str:
    """The report for a reader."""
    told = done.report
    spared = f"{words.percent(told['saved_share'])}% of {told['n_tasks_full']:,} runs of a task were spared"
    usd = told["saved_usd"]
    verdict = told["verdict"]
    head = {
        "verdict": verdict["text"] if verdict else f"too few to tell: {told['reason']}",
        **replay_figures({"replay": told}),
        "agents": told["agents"],
        "spared": spared + ("" if usd is None else f", ${usd:,.0f}"),
        "pairs in order": _share(told["pairs_correct"]),
        "Spearman's rho": told["rho"],
        "of the five best": _share(told["top5_overlap"]),
        "boards": f"{len(told['boards'])}, in the private benchmark {done.benchmark.slug}",
        "\nalerts": [_cells(one) for one in told["alerts"]] or "none",
        "\nreselections": [_cells(one) for one in told["reselections"]] or "none",
        "\nboards through time": [_board(one) for one in told["boards"]],
    }
    return as_text(head)


def _cells(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != "closed_reason"}


def _board(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "date": one["date"],
        "phase": one["phase"],
        "ranked": one["n"],
        "k": one["k"],
        "spared": _share(1 - one["n_tasks_run"] / one["n_tasks_full"]),
        "pairs in order": _share(one["pairs_correct"]),
        "rho": one["rho"],
        "of the five best": _share(one["top5_overlap"]),
    }


def _share(value: float | None) -> str | None:
    return None if value is None else f"{words.percent(value)}%"
