"""Write docs/reference/ from what the code says of itself: `python tools/reference.py`.

Commands and options are those of argparse, fields of the policy those of the model. A setting is described by
a comment `#: NAME | default | meaning` where it is read.
"""

import argparse
import contextlib
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")

import django  # noqa: E402 - the path comes first

django.setup()
from django.core.management import get_commands, load_command_class  # noqa: E402 - as above
from django.core.management.base import BaseCommand  # noqa: E402 - as above

from analytics import cli as analytics  # noqa: E402 - as above
from analytics.research import cli as research  # noqa: E402 - as above
from analytics.research.tuning import cli as tuning  # noqa: E402 - as above
from leaderboard.boards.export import ON, columns  # noqa: E402 - as above
from leaderboard.catalog.models import Policy  # noqa: E402 - as above
from leaderboard.catalog.rules import RULES, shown  # noqa: E402 - as above
from leaderboard.submissions.export.columns import KNOWN, ExportColumn  # noqa: E402 - as above
from leaderboard.submissions.parsing.flat import COLUMNS  # noqa: E402 - as above
from leaderboard.terminal.help import COMMANDS  # noqa: E402 - as above
from selection import cli as selection  # noqa: E402 - as above

WRITTEN = "Written by `python tools/reference.py`."
BASIC_SETTINGS = ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS", "SITE_URL", "TLS_HEADER", "EMAIL_URL")
PROGRAMS = (
    ("python -m selection", selection.main),
    ("python -m analytics", analytics.main),
    ("python -m analytics.research", research.main),
    ("python -m analytics.research.tuning", tuning.main),
)
BUNDLES = {"a table of your own (docs/formats.md)": "TABLE", "rules": "RULES"}
"""Options that come together, by the title of their group in argparse."""
EVERYWHERE = ("--json", "--only BENCHMARK", "--seed SEED")
"""Options that the page of the analyses explains once."""
SHORT = {"whole number": "integer", "true or false": "boolean"}
Parsers = Mapping[str, argparse.ArgumentParser]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


# ------------------------------------------------------------------------------------------------ commands


def spelling(action: argparse.Action) -> str:
    """Return an option or argument as a usage line has it."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    value = " ".join(value) if isinstance(value, tuple) else value
    if action.nargs in ("+", "*"):
        value += " …"
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else value
    return action.option_strings[-1] if action.nargs == 0 else f"{action.option_strings[-1]} {value}"


def meaning(action: argparse.Action) -> str:
    """Return what an option means; fields of the policy stand on their own page."""
    if action.option_strings == ["--set"] and "base_seed" in (action.help or ""):
        return "fields of the [policy](policy.md)"
    return (action.help or "").replace("%%", "%")


class Commands:
    """Commands of one page, without the options `others`; those in `once` are explained before the list."""

    def __init__(
        self,
        parsers: Iterable[argparse.ArgumentParser],
        others: Collection[str],
        once: Collection[str] = (),
    ) -> None:
        self.others, self.once = others, once
        options = [action for one in parsers for action in self.actions(one) if action.option_strings]
        pairs = Counter((spelling(action), meaning(action)) for action in options if action.help)
        self.common = {option: text for (option, text), n in pairs.items() if n >= 3 and option not in once}
        self.bundles = {spelling(action): BUNDLES.get(action.container.title, "") for action in options}

    def actions(self, parser: argparse.ArgumentParser) -> list[argparse.Action]:
        """Return arguments and options of a command."""
        return [action for action in parser._actions if not set(action.option_strings) & set(self.others)]

    def listed(self, parsers: Parsers) -> str:
        """Return a list of commands: usage, summary, and the options that are a command's own."""
        return "\n".join(line for name, parser in parsers.items() for line in self._lines(name, parser))

    def _lines(self, name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
        actions = self.actions(parser)
        own = [
            action
            for action in actions
            if action.option_strings and action.help and spelling(action) not in self.once
            if self.common.get(spelling(action)) != meaning(action)
        ]
        usage, bundles = [name], {}
        for action in sorted(actions, key=lambda action: bool(action.option_strings)):
            if not action.option_strings or action.required:
                usage.append(spelling(action))
            elif bundle := self.bundles[spelling(action)]:
                bundles[f"[{bundle}]"] = None
            elif action not in own and spelling(action) not in self.once:
                usage.append(f"[{spelling(action)}]")
        yield f"- `{' '.join([*usage, *bundles])}`: {' '.join((parser.description or '').split())}"
        yield from (f"  - `{spelling(action)}`: {meaning(action)}" for action in own)

    def in_common(self, without: str = "none") -> str:
        """Return a table of the options that three commands or more have."""
        common = [one for one in self.common.items() if self.bundles[one[0]] != without]
        rows = [(f"`{option}`", self.bundles[option], text) for option, text in common]
        return table(("option", "bundle", "meaning"), sorted(rows, key=lambda row: row[1]))


def service_parsers() -> dict[str, dict[str, argparse.ArgumentParser]]:
    """Return the parsers of the commands of `manage.py`, by group."""
    groups: dict[str, dict[str, argparse.ArgumentParser]] = {group: {} for group in COMMANDS}
    for name, application in sorted(get_commands().items()):
        if application == "leaderboard.terminal":
            command = load_command_class(application, name)
            group = next(group for group, texts in COMMANDS.items() if name in texts)
            groups[group][name] = command.create_parser("manage.py", name)
    return groups


def commands() -> str:
    """Return the page of the commands of the service."""
    groups = service_parsers()
    anywhere = BaseCommand().create_parser("manage.py", "any")
    page = Commands(
        [parser for group in groups.values() for parser in group.values()],
        [option for action in anywhere._actions for option in action.option_strings],
    )
    heads = {group: group.capitalize() for group in COMMANDS} | {"rare": "Rare (advanced)"}
    parts = [
        "# Commands\n\n`manage.py COMMAND` in a checkout, `bandstand-server COMMAND` where it is installed. "
        f"[operator.md](../operator.md) shows the daily ones at work. {WRITTEN}",
        *(f"## {heads[group]}\n\n{page.listed(some)}" for group, some in groups.items() if some),
        f"## Options in common\n\n{page.in_common()}",
        "## Exit codes\n\n0: done. 1: refused, one line per fault on stderr. 2: wrong usage or file not "
        "found. 141: the reader of the output went away (`… | head`).",
    ]
    return "\n\n".join(parts) + "\n"


def parsers_of(main: Callable[[Sequence[str]], int]) -> Parsers:
    """Return the parsers of a program's commands, by letting it print its help."""
    found: list[argparse.ArgumentParser] = []
    parse = argparse.ArgumentParser.parse_args

    def keep(self: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
        found.append(self)
        return parse(self, arguments)

    quiet = contextlib.redirect_stdout(io.StringIO())
    with patch.object(argparse.ArgumentParser, "parse_args", keep), quiet, contextlib.suppress(SystemExit):
        main(["--help"])
    (choices,) = (action.choices for action in found[0]._actions if action.choices)
    return dict(choices)


def analyses() -> str:
    """Return the page of the command lines of the core."""
    programs = {program: parsers_of(main) for program, main in PROGRAMS}
    every = [parser for some in programs.values() for parser in some.values()]
    page = Commands(every, ("-h", "--help"), EVERYWHERE)
    parts = [
        "# Commands of the analyses\n\n[command-lines.md](../command-lines.md) shows them at work, "
        "[tuning.md](../tuning.md) those of tuning. `FILE` is a [flat file](../flat-file.md) unless it says "
        "otherwise. All commands take `--json`; those that read flat files `--only BENCHMARK`; those that "
        f"draw at random `--seed SEED` (0). `--help` lists the rules that a command takes. {WRITTEN}",
        *(f"## `{program}`\n\n{page.listed(parsers)}" for program, parsers in programs.items()),
        "## Options in common\n\nTABLE: as on [the page of the service](commands.md#options-in-common).\n\n"
        f"{page.in_common(without='TABLE')}",
    ]
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------------------------------------ fields


def basic_first(heads: Sequence[str], basic: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """Return two tables of what is basic and what is advanced."""
    advanced = [row for name, row in rows.items() if name not in basic]
    return (
        f"## Basic\n\n{table(heads, [rows[name] for name in basic])}\n\n"
        f"## Advanced\n\n{table(heads, advanced)}\n"
    )


def policy() -> str:
    """Return the page of the fields of a policy."""
    rows, empty = {}, Policy()
    for name, rule in RULES.items():
        default, allowed = shown(name, getattr(empty, name)), rule.words.partition("; or empty: ")[0]
        allowed = re.sub(r"^(one of|a (whole )?number( from| of)?) ", "", allowed)
        rows[name] = (f"`{name}`", default or "empty", allowed, Policy._meta.get_field(name).help_text)
    return (
        "# Policy\n\nThe rules of a benchmark. Rows are numbered and never change; the highest is in force. "
        "`manage.py policy SLUG` shows them. `--set FIELD=VALUE` adds a row; `--dry-run` shows which tasks "
        f"and ranks would change. {WRITTEN}\n\n"
        + basic_first(("field", "default", "allowed", "meaning"), Policy.BASIC, rows)
    )


def declared_settings() -> dict[str, tuple[str, str]]:
    """Return default and meaning of each setting, from the comments where they are read."""
    found = {}
    for path in sorted((ROOT / "leaderboard").glob("*.py")):
        text = re.sub(r"\n *#:   ", " ", path.read_text(encoding="utf-8"))
        for name, *told in re.findall(r"^ *#: (\w+) \| (.+?) \| (.+)$", text, re.MULTILINE):
            found[name] = tuple(told)
    return found


def settings() -> str:
    """Return the page of the settings."""
    rows = {name: (f"`{name}`", *told) for name, told in sorted(declared_settings().items())}
    return (
        "# Settings\n\nEnvironment variables. Without `DATABASE_URL` the embedded PostgreSQL is used and no "
        f"setting is needed. Switches are `on` or `off`. {WRITTEN}\n\n"
        + basic_first(("variable", "default", "meaning"), BASIC_SETTINGS, rows)
    )


def data_dictionary() -> str:
    """Return the page of the columns of the downloads."""

    def rows(some: Iterable[ExportColumn], where: str = "") -> str:
        plain = [column.as_plain() for column in some]
        texts = [one["description"].removeprefix(where) for one in plain]
        kinds = [SHORT.get(one["type"], one["type"]) for one in plain]
        cells = [(f"`{one['name']}`", *told) for one, *told in zip(plain, kinds, texts, strict=True)]
        return table(("column", "type", "what it holds"), cells)

    (first, where), *_ = ON.items()
    of_targets = tuple(f"{target}_" for target in ON)
    return (
        "# Data dictionary\n\nThe columns of the downloads, as submitted. Empty: not stated. "
        f"`/api/v1/benchmarks/{{slug}}/data-dictionary` lists those of one benchmark. {WRITTEN}\n\n"
        "## Outcomes\n\nOne row per trial, with the columns of the [flat file](../flat-file.md) that have "
        "values, and these. Other submitted columns follow as text. If there would be more than 64 columns, "
        "the column `metadata` has them as a JSON object.\n\n"
        f"{rows(one for one in KNOWN if one.name not in COLUMNS)}\n\n"
        "## Boards\n\nOne row per agent, in rank order.\n\n"
        f"{rows(one for one in columns() if not one.name.startswith(of_targets))}\n\n"
        "These columns follow for each target. `full_` is all tasks, `subset_` the tasks of the subset, "
        "`domain_` tasks like these.\n\n"
        f"{rows((one for one in columns() if one.name.startswith(f'{first}_')), f'{where}: ')}\n"
    )


PAGES = {
    "analyses.md": analyses,
    "commands.md": commands,
    "data-dictionary.md": data_dictionary,
    "policy.md": policy,
    "settings.md": settings,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / "docs" / "reference" / name).write_text(page(), encoding="utf-8")
