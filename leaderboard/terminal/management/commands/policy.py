from argparse import ArgumentParser
from collections.abc import Iterator
from textwrap import fill
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES, shown
from leaderboard.operations.policies import changed_policy, changes, is_replayed, put_in_force, replays
from leaderboard.operations.previews import foresee
from leaderboard.studies.answers import WIDTH, progress_bar, verdict
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study
from leaderboard.terminal.command import BenchmarkCommand, settings_in
from leaderboard.terminal.printing import advice


class Command(BenchmarkCommand):
    help = "Show the rules of a benchmark, or change them. A change first shows which tasks and ranks change."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--set", dest="values", nargs="+", action="extend", metavar="FIELD=VALUE", help=", ".join(RULES)
        )
        parser.add_argument("--dry-run", action="store_true", help="show what would change, store nothing")
        parser.add_argument("--advanced", action="store_true", help="show all fields")

    def handle(
        self,
        *,
        benchmark: Benchmark,
        values: list[str] | None,
        dry_run: bool,
        advanced: bool,
        **_: Any,
    ) -> None:
        if not values:
            policy = policy_in_force(benchmark)
            self.stdout.write(
                f"Policy {policy.number} of {benchmark}, in force since {policy.created_at:%Y-%m-%d}"
            )
            self.stdout.write("\n".join(_field_lines(policy, advanced=advanced)))
            study = latest_study(ValidationStudy, benchmark)
            if study and (better := advice(benchmark, verdict(study.result, policy.strategy))):
                self.stdout.write(f"\n{better}")
            return
        after = changed_policy(benchmark=benchmark, values=settings_in(values))
        self.stdout.write("\n".join(_preview_lines(benchmark, after)))
        if not dry_run and changes(policy_in_force(benchmark), after):
            put_in_force(policy=after)
            self.stdout.write(f"Policy {after.number} is in force.\nNext: {PROGRAM} recompute {benchmark}")


def _field_lines(policy: Policy, *, advanced: bool) -> Iterator[str]:
    """Each field with value and sentence; of the advanced ones, unless asked for, those that were changed."""
    fields, width = {field.name: field for field in Policy._meta.fields}, max(map(len, RULES))
    names = sorted(RULES, key=lambda name: name not in Policy.BASIC)
    indent = " " * (width + 4)
    for name in names:
        value, is_basic = getattr(policy, name), name in Policy.BASIC
        if is_basic or advanced or value != fields[name].get_default():
            mark = "" if is_basic else "  (advanced)"
            yield f"  {name:<{width}}  {shown(name, value) or '(empty)'}{mark}"
            about = f"{str(fields[name].help_text).rstrip('.')}. Use {RULES[name].words}."
            if name == "missing" and policy.resolved_from:
                about += f" Decided by {policy.resolved_from}."
            yield fill(about, WIDTH, initial_indent=indent, subsequent_indent=indent)
    if not advanced:
        n = len(RULES) - len(Policy.BASIC)
        yield f"\n{n} advanced fields: {PROGRAM} policy {policy.benchmark.slug} --advanced"


def _preview_lines(benchmark: Benchmark, after: Policy) -> Iterator[str]:
    changed = changes(policy_in_force(benchmark), after)
    for field, (old, new) in changed.items():
        yield f"{field}: {shown(field, old) or '(empty)'} → {shown(field, new) or '(empty)'}"
    if not changed:
        yield "No change: this is the policy in force."
    else:
        yield from foresee(benchmark, after).sentences
        if is_replayed(policy_in_force(benchmark), after):
            with progress_bar("Replaying") as progress:
                yield from replays(benchmark, after, progress)
