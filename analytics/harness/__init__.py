"""Harness quality: how well an evaluation pipeline measures the models it is given.

The harness is the instrument, the models are what it measures. From a score tensor (``tensor``) come the
variance components and the reliability (``gstudy``), discriminability, coverage, fitness, cost and scorer
calibration (``quality``), the stability of the ranking (``stability``), the comparison of two configurations
(``comparison``), and all of it on one page (``report``).

Source: *Toward Meta-Harness Optimization*, ch. 28. The results it prints are not what its listing gives;
where its formulas are replaced, the module says so.
"""

from analytics.harness.comparison import compare, compare_several
from analytics.harness.gstudy import agreement, mdes, reliability, variance_components
from analytics.harness.quality import cost, coverage, discriminability, fitness, pairwise_d, scorer_auc
from analytics.harness.report import MANDATORY_METADATA, report
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
    "scorer_auc",
    "split_half",
    "tensor_of_columns",
    "tensor_of_file",
    "variance_components",
]
