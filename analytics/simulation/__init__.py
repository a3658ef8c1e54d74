"""A simulated benchmark: agents, tasks and trials drawn from a known response model.

=============  ============================================================================================
module         holds
=============  ============================================================================================
``benchmark``  the response model; `simulate`, and the built-in `demonstration`
``invented``   names and dates of scaffolds, models, agents and tasks
=============  ============================================================================================
"""

from analytics.simulation.benchmark import (
    DEMONSTRATION,
    SimulatedBenchmark,
    demonstration,
    flat_rows,
    simulate,
)

__all__ = [
    "DEMONSTRATION",
    "SimulatedBenchmark",
    "demonstration",
    "flat_rows",
    "simulate",
]
