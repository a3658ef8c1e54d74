"""A data set as Hugging Face takes it: `data/outcomes.parquet`, and a card (README.md with a YAML head)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from leaderboard.submissions.export.columns import TYPES, ExportColumn
from leaderboard.submissions.export.outcomes import OutcomeRows
from leaderboard.submissions.export.snapshot import ExportInfo
from leaderboard.submissions.export.streams import write_parquet

FILE = "data/outcomes.parquet"
SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
)
LARGER = "10M<n<100M"
# Of the identifiers that the hub knows, those that data have.
LICENCES = re.compile(
    r"cc0-1\.0|cc-by(-nc)?(-sa|-nd)?-[234]\.0|mit|apache-2\.0|odbl|odc-by|pddl|bsd-3-clause"
)


def write(folder: Path, outcomes: OutcomeRows) -> None:
    path = folder / FILE
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.writelines(write_parquet(outcomes))
    about = outcomes.snapshot.about
    text = card(about, outcomes.columns, outcomes.n_rows)
    (folder / "README.md").write_text(text, encoding="utf-8")


def card(about: ExportInfo, columns: tuple[ExportColumn, ...], n_rows: int) -> str:
    parts = [_head(about, n_rows), f"# {about.title}", *_text(about, n_rows), "## Columns", _table(columns)]
    if about.citation:
        parts += ["## Citation", _fenced(about.citation)]
    return "\n\n".join(parts) + "\n"


def _head(about: ExportInfo, n_rows: int) -> str:
    """The YAML head; a text as JSON writes it is a text of YAML too."""
    size = next((name for limit, name in SIZES if n_rows < limit), LARGER)
    lines = [
        "---",
        f"pretty_name: {_quote(about.title)}",
        *_licence(about.licence),
        "tags:",
        *(f"- {tag}" for tag in ("agents", "benchmark", "evaluation", "leaderboard")),
        "size_categories:",
        f"- {size}",
        "configs:",
        "- config_name: default",
        "  data_files:",
        "  - split: train",
        f"    path: {FILE}",
        "---",
    ]
    return "\n".join(lines)


def _licence(licence: str) -> Iterator[str]:
    identifier = re.sub(r"\s+", "-", licence.strip().lower())
    if LICENCES.fullmatch(identifier):
        yield f"license: {identifier}"
    elif licence:
        yield "license: other"
        yield f"license_name: {_quote(licence)}"
    else:
        yield "license: unknown"


def _text(about: ExportInfo, n_rows: int) -> Iterator[str]:
    yield (
        f"{n_rows:,} outcomes of AI agents, one row for each trial of an agent on a task: data version "
        f"{about.data_version} of the benchmark `{about.slug}`."
    )
    if about.url:
        yield f"The benchmark is described at <{about.url}>."
    yield f"Licence: {about.licence or 'not stated'}."
    yield (
        "A mean over rows counts tasks with many trials more often; take the mean by task first. Trials with "
        "`valid` false are failures of the harness, and say nothing about the agent."
    )


def _table(columns: tuple[ExportColumn, ...]) -> str:
    rows = [f"| `{one.name}` | {TYPES[one.kind]} | {one.description} |" for one in columns]
    return "\n".join(["| column | type | what it holds |", "|---|---|---|", *rows])


def _fenced(text: str) -> str:
    """A text as it is; its own fences are shorter than that around it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}\n{text}\n{fence}"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
