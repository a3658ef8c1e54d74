"""The columns of exported outcomes, each with its type and what it holds: the data dictionary.

They are those of the flat file, so that what is exported is loaded as it is. A column stands in an export
where some outcome of the benchmark says something in it; the required ones always do. Behind them stand the
columns that came with deliveries and that the flat file does not name.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TEXT, NUMBER, WHOLE, TRUTH = pa.string(), pa.float64(), pa.int64(), pa.bool_()
CODED = pa.dictionary(pa.int32(), pa.string())
MEDIA_TYPES = {  # of files, over HTTP
    "csv": "text/csv; charset=utf-8",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
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


AS_DELIVERED = "as it was delivered; empty where it was not stated"
NAMED = (
    ExportColumn("benchmark", CODED, "Name of the benchmark.", always=True),
    ExportColumn("agent", CODED, "Name of the agent: scaffold, model and version together.", always=True),
    ExportColumn("scaffold", CODED, "The harness around the model.", always=True),
    ExportColumn("model", CODED, "The model that the scaffold calls.", always=True),
    ExportColumn("version", CODED, f"Version of the agent, {AS_DELIVERED}."),
    ExportColumn("organisation", CODED, f"Who made the agent, {AS_DELIVERED}."),
    ExportColumn("weights", CODED, f"Weights of its model: open or closed, {AS_DELIVERED}."),
    ExportColumn(
        "submitted_at",
        CODED,
        "When the submission was made, by its submitter, in UTC: a day, a moment (2024-04-30T12:00:00Z), a "
        "month where no more is known, or empty.",
        always=True,
    ),
    ExportColumn("link", CODED, f"Address of the run, {AS_DELIVERED}."),
    ExportColumn("logs", CODED, f"Address of its logs, {AS_DELIVERED}."),
    ExportColumn("code", CODED, f"Address of the agent's code, {AS_DELIVERED}."),
    ExportColumn("report", CODED, f"Address of a report, {AS_DELIVERED}."),
    ExportColumn("commit", CODED, f"Address of the commit that was run, {AS_DELIVERED}."),
    ExportColumn("task", CODED, "Name of the task.", always=True),
    ExportColumn("category", CODED, "Category of the task; empty where it has none."),
    ExportColumn(
        "group", CODED, "What the task was taken from together with others; empty where it has none."
    ),
    ExportColumn("prompt_variant", CODED, f"Variant of the prompt, {AS_DELIVERED}."),
    ExportColumn("judge", CODED, f"Who or what judged the trial, {AS_DELIVERED}."),
    ExportColumn("temperature", NUMBER, f"Sampling temperature, {AS_DELIVERED}."),
    ExportColumn("run", CODED, f"Label of the run, {AS_DELIVERED}: a repetition of everything."),
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
    ExportColumn("cost_usd", NUMBER, f"Cost of the trial in US dollars, {AS_DELIVERED}."),
    ExportColumn("n_input_tokens", WHOLE, f"Tokens read by the model, {AS_DELIVERED}."),
    ExportColumn("n_output_tokens", WHOLE, f"Tokens written by the model, {AS_DELIVERED}."),
    ExportColumn("seconds_environment", NUMBER, f"Seconds spent on the environment, {AS_DELIVERED}."),
    ExportColumn("seconds_execution", NUMBER, f"Seconds spent by the agent, {AS_DELIVERED}."),
    ExportColumn("seconds_scoring", NUMBER, f"Seconds spent on scoring, {AS_DELIVERED}."),
    ExportColumn("human", NUMBER, "What people say that the outcome is; empty where nobody was asked."),
    ExportColumn(
        "human_probability",
        NUMBER,
        f"The probability with which the task was drawn to be asked about, {AS_DELIVERED}.",
    ),
)
OF_AGENT = ("agent", "scaffold", "model", "version", "organisation", "weights")
LINKS = ("link", "logs", "code", "report", "commit")
FACETS = ("prompt_variant", "judge", "temperature", "run")
KNOWN = (*NAMED, *TRIALS, *MEASURED)
METADATA = "metadata"


TOGETHER = ExportColumn(METADATA, TEXT, "What else was delivered with the outcome, as a JSON object.")
AS_METADATA = "Delivered with the outcomes under this name; kept as text."
