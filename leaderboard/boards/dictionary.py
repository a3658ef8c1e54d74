"""The data dictionary as a page: docs/data-dictionary.md is what this prints."""

from collections.abc import Iterable, Mapping
from typing import Any

from leaderboard.boards.export import columns as of_boards
from leaderboard.submissions.export.columns import KNOWN

PAGE = """\
# Data dictionary

What the columns of the downloads hold. They are described where they are made; this page is written from
there, and `/api/v1/benchmarks/{{slug}}/data-dictionary` tells the same of one benchmark, with the columns
that it has.

## Outcomes

One row for each trial of an agent on a task, with the columns of the [flat file](flat-file.md). A column
stands in an export where some outcome may say something in it. Behind these stand, as text, the columns that
came with deliveries and that are not named here; where there would be more than 64 columns, all of them stand
in one, `metadata`, as a JSON object.

{outcomes}

## Boards

One row for each agent, in rank order. Behind the columns of the agent come those of every target: all tasks
(`full`), the tasks of the subset (`subset`), and tasks like these (`domain`).

{boards}
"""


def page() -> str:
    outcomes = table(column.as_plain() for column in KNOWN)
    return PAGE.format(outcomes=outcomes, boards=table(column.as_plain() for column in of_boards()))


def table(columns: Iterable[Mapping[str, Any]]) -> str:
    rows = [f"| `{one['name']}` | {one['type']} | {one['description']} |" for one in columns]
    return "\n".join(["| column | type | what it holds |", "|---|---|---|", *rows])
