"""The columns of exported outcomes, each with its type and what it holds: the data dictionary.

They are those of the flat file, so that what is exported is loaded as it is. A column stands in an export
where some outcome of the benchmark says something in it; the required ones always do. Behind them stand the
columns that came with deliveries and that the flat file does not name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TEXT, NUMBER, WHOLE, TRUTH = pa.string(), pa.float64(), pa.int64(), pa.bool_()
CODED = pa.dictionary(pa.int32(), pa.string())
TYPES = {TEXT: "text", CODED: "text", NUMBER: "number", WHOLE: "whole number", TRUTH: "true or false"}


@dataclass(frozen=True)
class ExportColumn:
    """One column: how Arrow holds it, and what it tells; `always`: it stands in every export."""

    name: str
    kind: pa.DataType
    description: str
    always: bool = False

    def as_plain(self) -> dict[str, Any]:
        return {"name": self.name, "type": TYPES[self.kind], "description": self.description}

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.kind, metadata={"description": self.description})


STATED = "as it was delivered; empty where it was not stated"
NAMED = (
    ExportColumn("benchmark", CODED, "Name of the benchmark.", always=True),
    ExportColumn("agent", CODED, "Name of the agent: scaffold, model and version together.", always=True),
    ExportColumn("scaffold", CODED, "The harness around the model.", always=True),
    ExportColumn("model", CODED, "The model that the scaffold calls.", always=True),
    ExportColumn("version", CODED, f"Version of the agent, {STATED}."),
    ExportColumn("organisation", CODED, f"Who made the agent, {STATED}."),
    ExportColumn(
        "submitted_at",
        CODED,
        "When the submission was made, by its submitter, in UTC: a day, a moment (2024-04-30T12:00:00Z), a "
        "month where no more is known, or empty.",
        always=True,
    ),
    ExportColumn("link", CODED, f"Address of the run, {STATED}."),
    ExportColumn("logs", CODED, f"Address of its logs, {STATED}."),
    ExportColumn("code", CODED, f"Address of the agent's code, {STATED}."),
    ExportColumn("report", CODED, f"Address of a report, {STATED}."),
    ExportColumn("commit", CODED, f"Address of the commit that was run, {STATED}."),
    ExportColumn("task", CODED, "Name of the task.", always=True),
    ExportColumn("category", CODED, "Category of the task; empty where it has none."),
    ExportColumn(
        "group", CODED, "What the task was taken from together with others; empty where it has none."
    ),
    ExportColumn("prompt_variant", CODED, f"Variant of the prompt, {STATED}."),
    ExportColumn("judge", CODED, f"Who or what judged the trial, {STATED}."),
    ExportColumn("temperature", NUMBER, f"Sampling temperature, {STATED}."),
    ExportColumn("run", CODED, f"Label of the run, {STATED}: a repetition of everything."),
)
TRIALS = (
    ExportColumn("trial", WHOLE, "Which of the repeated trials of this task, from 0 to 32,767.", always=True),
    ExportColumn(
        "outcome",
        NUMBER,
        "How the trial came out, from 0 (failed) to 1 (passed); empty only where it is invalid.",
        always=True,
    ),
    ExportColumn("valid", TRUTH, "False where the harness failed, not the agent.", always=True),
)
MEASURED = (
    ExportColumn("cost_usd", NUMBER, f"Cost of the trial in US dollars, {STATED}."),
    ExportColumn("n_input_tokens", WHOLE, f"Tokens read by the model, {STATED}."),
    ExportColumn("n_output_tokens", WHOLE, f"Tokens written by the model, {STATED}."),
    ExportColumn("seconds_environment", NUMBER, f"Seconds spent on the environment, {STATED}."),
    ExportColumn("seconds_execution", NUMBER, f"Seconds spent by the agent, {STATED}."),
    ExportColumn("seconds_scoring", NUMBER, f"Seconds spent on scoring, {STATED}."),
    ExportColumn("human", NUMBER, "What people say that the outcome is; empty where nobody was asked."),
    ExportColumn(
        "human_probability",
        NUMBER,
        f"The probability with which the task was drawn to be asked about, {STATED}.",
    ),
)
OF_AGENT = ("agent", "scaffold", "model", "version", "organisation")
LINKS = ("link", "logs", "code", "report", "commit")
FACETS = ("prompt_variant", "judge", "temperature", "run")
KNOWN = (*NAMED, *TRIALS, *MEASURED)
METADATA = "metadata"


def of_metadata(name: str) -> ExportColumn:
    return ExportColumn(name, TEXT, "Delivered with the outcomes under this name; kept as text.")


TOGETHER = ExportColumn(METADATA, TEXT, "What else was delivered with the outcome, as a JSON object.")


def schema_of(columns: Iterable[ExportColumn], about: dict[str, str]) -> pa.Schema:
    return pa.schema([column.field for column in columns], metadata=about)
