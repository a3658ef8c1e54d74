"""A flat file as agents, deliveries and rows: an operator's load, a delivery for each agent and run label."""

from datetime import date
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.flat_file import OF_AGENT, FlatFile, weights_in
from analytics.record.rows import About, Delivery, Rows

LINKS = ("link", "report", "logs", "code", "commit")
TOKENS = ("n_input_tokens", "n_output_tokens")
SECONDS = ("seconds_environment", "seconds_execution", "seconds_scoring")


def contents(flat: FlatFile) -> dict[str, Any]:
    """Return what `Record.of` takes."""
    # the deliveries by agent and run label
    runs = [setting.run or "" for setting in flat.settings]
    labels = {label: i for i, label in enumerate(sorted(set(runs)))}
    run = np.array([labels[label] for label in runs], dtype=np.int64)
    keys = flat.agent.astype(np.int64) * len(labels) + run[flat.setting]
    codes, delivery = np.unique(keys, return_inverse=True)
    return {
        "about": _about(flat),
        "rows": Rows(
            agent=flat.agent.astype(np.int64),
            task=flat.task.astype(np.int64),
            setting=flat.setting.astype(np.int64),
            delivery=delivery.astype(np.int64),
            trial=flat.trial.astype(np.int64),
            outcome=flat.outcome,
            valid=flat.valid,
            confirmed=np.ones(flat.n_rows, dtype=np.bool_),
            cost_usd=_added(flat, ("cost_usd",)),
            n_tokens=_added(flat, TOKENS),
            seconds=_added(flat, SECONDS),
            human=flat.labels.get("human"),
            human_probability=flat.labels.get("human_probability"),
        ),
        "tasks": flat.tasks,
        "groups": flat.groups,
        "categories": flat.categories,
        "settings": flat.settings,
        "deliveries": [Delivery(agent=key // len(labels)) for key in codes.tolist()],
    }


def _about(flat: FlatFile) -> list[About]:
    texts = {name: _texts(flat, name) for name in (*OF_AGENT, *LINKS)}
    # each agent's earliest date, and whether it is of the month or year alone
    rows = np.flatnonzero(~np.isnat(flat.submitted_at))
    order = rows[np.lexsort((flat.imprecise[rows], flat.submitted_at[rows], flat.agent[rows]))]
    agents, first = np.unique(flat.agent[order], return_index=True)
    dates: list[tuple[str | None, bool]] = [(None, False)] * len(flat.agents)
    for agent, row in zip(agents.tolist(), order[first].tolist(), strict=True):
        day: date = flat.submitted_at[row].astype("datetime64[D]").item()
        dates[agent] = (day.isoformat(), bool(flat.imprecise[row]))
    return [
        About(
            name=name,
            scaffold=flat.scaffolds[i],
            model=flat.models[i],
            version=texts["version"][i],
            organisation=texts["organisation"][i],
            weights=weights_in(texts["weights"][i], texts["open_model"][i]),
            links={link: texts[link][i] for link in LINKS if texts[link][i]},
            submitted_at=dates[i][0],
            imprecise=dates[i][1],
        )
        for i, name in enumerate(flat.agents)
    ]


def _texts(flat: FlatFile, column: str) -> list[str]:
    texts = [""] * len(flat.agents)
    if column not in flat.metadata:
        return texts
    pairs = set(zip(flat.agent.tolist(), flat.metadata[column].to_pylist(), strict=True))
    for agent, text in sorted((agent, text) for agent, text in pairs if text):
        texts[agent] = texts[agent] or text
    return texts


def _added(flat: FlatFile, columns: tuple[str, ...]) -> FloatArray | None:
    """Add the columns that a row states, (n_rows,), NaN where it states none; None without any."""
    there = [flat.measured[name] for name in columns if name in flat.measured]
    if not there:
        return None
    values = np.stack(there)
    return np.where(np.isnan(values).all(axis=0), np.nan, np.nansum(values, axis=0))
