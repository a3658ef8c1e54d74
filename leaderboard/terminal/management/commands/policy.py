from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES, shown
from leaderboard.operations.policies import changed_policy, changes, is_replayed, put_in_force, replays
from leaderboard.operations.previews import foresee
from leaderboard.studies.answers import progress_bar, verdict
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study
from leaderboard.terminal.command import BenchmarkCommand, settings_in
from leaderboard.terminal.printing import advice


class Command(BenchmarkCommand):
    help = (
        "Show the policy of a benchmark with a sentence for each field, or put a changed one in force and "
        "tell what changes with it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--set", dest="values", nargs="+", action="extend", metavar="FIELD=VALUE", help=", ".join(RULES)
        )
        parser.add_argument("--dry-run", action="store_true", help="tell what would change, store nothing")

    def handle(self, *, benchmark: Benchmark, values: list[str] | None, dry_run: bool, **_: Any) -> None:
        if not values:
            policy, width = policy_in_force(benchmark), max(map(len, RULES))
            self.stdout.write(
                f"Policy {policy.number} of {benchmark}, in force since {policy.created_at:%Y-%m-%d}"
            )
            helps = {field.name: str(field.help_text) for field in Policy._meta.fields}
            for field, rule in RULES.items():
                about = helps[field].rstrip(".")
                self.stdout.write(f"  {field:<{width}}  {shown(field, getattr(policy, field)) or '(empty)'}")
                self.stdout.write(f"  {'':<{width}}    {about}. It is {rule.words}.")
                if field == "missing" and policy.resolved_from:
                    self.stdout.write(f"  {'':<{width}}    Decided by {policy.resolved_from}.")
            study = latest_study(ValidationStudy, benchmark)
            if study and (better := advice(benchmark, verdict(study.result, policy.strategy))):
                self.stdout.write(f"\n{better}")
            return
        after = changed_policy(benchmark=benchmark, values=settings_in(values))
        self.stdout.write("\n".join(_preview_lines(benchmark, after)))
        if not dry_run and changes(policy_in_force(benchmark), after):
            put_in_force(policy=after)
            self.stdout.write(f"Policy {after.number} is in force.\nNext: {PROGRAM} recompute {benchmark}")


def _preview_lines(benchmark: Benchmark, after: Policy) -> Iterator[str]:
    changed = changes(policy_in_force(benchmark), after)
    for field, (old, new) in changed.items():
        yield f"{field}: {shown(field, old) or '(empty)'} → {shown(field, new) or '(empty)'}"
    if not changed:
        yield "This is the policy in force; nothing changes."
    else:
        yield from foresee(benchmark, after).sentences
        if is_replayed(policy_in_force(benchmark), after):
            with progress_bar("Replaying") as progress:
                yield from replays(benchmark, after, progress)
