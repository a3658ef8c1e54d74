"""Harness quality: how well an evaluation pipeline measures the models it is given.

The harness is the instrument, the models are what it measures.

Source: *Toward Meta-Harness Optimization*, ch. 28. The results it prints are not what its listing gives;
where its formulas are replaced, the module says so.
"""

from analytics.harness.gstudy import agreement, mdes, reliability, variance_components
from analytics.harness.quality import (
    compare,
    compare_several,
    cost,
    coverage,
    discriminability,
    fitness,
    pairwise_d,
    scorer_auc,
)
from analytics.harness.report import MANDATORY_METADATA, report, report_text
from analytics.harness.stability import page_test, rank_stability, split_half
from analytics.harness.tensor import ScoreTensor, tensor_of_columns, tensor_of_file

__all__ = [
    "MANDATORY_METADATA",
    "ScoreTensor",
    "agreement",
    "compare",
    "compare_several",
    "cost",
    "coverage",
    "discriminability",
    "fitness",
    "mdes",
    "page_test",
    "pairwise_d",
    "rank_stability",
    "reliability",
    "report",
    "report_text",
    "scorer_auc",
    "split_half",
    "tensor_of_columns",
    "tensor_of_file",
    "variance_components",
]
