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


NAMED = (
    ExportColumn("benchmark", CODED, "Name of the benchmark.", always=True),
    ExportColumn("agent", CODED, "Name of the agent: scaffold, model and version together.", always=True),
    ExportColumn("scaffold", CODED, "Program around the model.", always=True),
    ExportColumn("model", CODED, "Model that the scaffold calls.", always=True),
    ExportColumn("version", CODED, "Version of the agent."),
    ExportColumn("organisation", CODED, "Who made the agent."),
    ExportColumn("weights", CODED, "Weights of its model: open or closed."),
    ExportColumn(
        "submitted_at",
        CODED,
        "Submission date in UTC: month, day or time (2024-04-30T12:00:00Z).",
        always=True,
    ),
    ExportColumn("link", CODED, "Web address of the submission."),
    ExportColumn("logs", CODED, "Address of the logs."),
    ExportColumn("code", CODED, "Address of the agent's code."),
    ExportColumn("report", CODED, "Address of a report."),
    ExportColumn("commit", CODED, "Address of the commit that was run."),
    ExportColumn("task", CODED, "Name of the task.", always=True),
    ExportColumn("category", CODED, "Category of the task."),
    ExportColumn("group", CODED, "Common source of several tasks, such as a repository."),
    ExportColumn("prompt_variant", CODED, "Variant of the prompt."),
    ExportColumn("judge", CODED, "Judge of the trial."),
    ExportColumn("temperature", NUMBER, "Sampling temperature."),
    ExportColumn("run", CODED, "Label of one full run."),
)
TRIALS = (
    ExportColumn("trial", WHOLE, "Number of the trial of this task, from 0 to 32,767.", always=True),
    ExportColumn(
        "outcome",
        NUMBER,
        "Result of the trial, from 0 (failed) to 1 (passed). Only an invalid trial may have none.",
        always=True,
    ),
    ExportColumn(
        "valid",
        TRUTH,
        "False if the harness (the test system) failed, not the agent. An invalid trial counts as a failure "
        "until the operator confirms it.",
        always=True,
    ),
)
MEASURED = (
    ExportColumn("cost_usd", NUMBER, "Cost of the trial in US dollars."),
    ExportColumn("n_input_tokens", WHOLE, "Tokens read by the model."),
    ExportColumn("n_output_tokens", WHOLE, "Tokens written by the model."),
    ExportColumn("seconds_environment", NUMBER, "Seconds for the environment, such as its setup."),
    ExportColumn("seconds_execution", NUMBER, "Seconds that the agent ran."),
    ExportColumn("seconds_scoring", NUMBER, "Seconds of scoring."),
    ExportColumn("human", NUMBER, "Result according to people."),
    ExportColumn("human_probability", NUMBER, "Probability that the task was sampled for human review."),
)
OF_AGENT = ("agent", "scaffold", "model", "version", "organisation", "weights")
LINKS = ("link", "logs", "code", "report", "commit")
FACETS = ("prompt_variant", "judge", "temperature", "run")
KNOWN = (*NAMED, *TRIALS, *MEASURED)
METADATA = "metadata"


TOGETHER = ExportColumn(METADATA, TEXT, "Other submitted columns, as a JSON object.")
AS_METADATA = "Another submitted column, as text."
