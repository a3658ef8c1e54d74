"""A validation as plain values, ready for JSON: no NaN, no numpy, None where there is no figure.

Model
-----
The keys are those of the command line: ``{"agents", "agents_in_file", "tasks", "strategy",
"estimator", "subset", "protocols", "bands"}``; no ``bands`` where they were not asked for.

Symbols
-------
None: values keep their names and units.

Not done here
-------------
Nothing is rounded.

Source
------
ARCHITECTURE §6 of this project.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from selection.validation.nested import Protocol, Validation
from selection.validation.study import ValidationFigures
from selection.validation.widths import Bands

ONLY_WHERE_SCATTERED = ("spread", "worst", "best")


def as_json(validation: Validation) -> dict[str, Any]:
    """Return one object of plain values, in full precision."""
    band = validation.band
    return {
        "agents": validation.n_agents,
        "agents_in_file": validation.n_agents_in_file,
        "tasks": validation.n_tasks,
        "strategy": validation.strategy,
        "estimator": validation.estimator,
        "subset": {
            "lo": float(band.lo),
            "hi": float(band.hi),
            "size": band.size,
            "widened": band.widened,
            "suited": band.suited,
            "reason": band.reason,
            "tasks": list(validation.subset),
        },
        "protocols": {name: _protocol(protocol) for name, protocol in validation.protocols.items()},
        **({"bands": _bands(validation.bands)} if validation.bands else {}),
    }


def _bands(bands: Bands) -> dict[str, Any]:
    return {
        "widths": [asdict(width) for width in bands.widths],
        "overlaps": [asdict(overlap) for overlap in bands.overlaps],
        "reason": bands.reason,
    }


def _protocol(protocol: Protocol) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "available": protocol.available,
        "reason": protocol.reason,
        "n_folds": protocol.n_folds,
        "n_skipped": protocol.n_skipped,
        "k_mean": protocol.k_mean,
        "strategies": _by_strategy(protocol.strategies),
    }
    if protocol.per_scaffold:
        plain["per_scaffold"] = {name: _by_strategy(by) for name, by in protocol.per_scaffold.items()}
    if protocol.prequential is not None:
        plain["prequential"] = asdict(protocol.prequential)
    return plain


def _by_strategy(strategies: Mapping[str, ValidationFigures]) -> dict[str, Any]:
    return {name: _figures(figures) for name, figures in strategies.items()}


def _figures(figures: ValidationFigures) -> dict[str, Any]:
    plain = {entry.name: getattr(figures, entry.name) for entry in fields(figures)}
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in plain.items()
        if value or name not in ONLY_WHERE_SCATTERED
    }
