"""Nested validation: whether a subset chosen without an agent would have put that agent in its place.

Selection, k and calibration happen inside each fold, on its training agents only. Choosing the best strategy
by these figures is optimistic. Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4.
"""

from selection.validation.nested import Validation, as_json, validate
from selection.validation.study import ValidationFigures

__all__ = ["Validation", "ValidationFigures", "as_json", "validate"]
