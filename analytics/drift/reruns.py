"""Whom to ask for a full run."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

N_RERUNS = 8
N_MORE = 8  # of those tied at the top and the first of new scaffolds


@dataclass(frozen=True)
class Rerun:
    """One agent asked for a full run.

    agent: position.
    sampled: drawn uniformly at random; only these feed rank fidelity.
    inclusion: π, the probability of being drawn; 1 for the others.
    """

    agent: int
    sampled: bool
    inclusion: float
    why: str


def rerun_set(
    since: npt.NDArray[np.intp],
    ties: npt.NDArray[np.intp],
    new_scaffolds: npt.NDArray[np.intp],
    rng: np.random.Generator,
    *,
    n: int = N_RERUNS,
) -> list[Rerun]:
    """Choose the agents of a rerun request: `n` at random, the top ties, one for each new scaffold.

    since: positions of the agents submitted since activation, of which is drawn.
    ties, new_scaffolds: positions of agents tied at the top, and of one agent for each new scaffold; the
        first 8 of those that were not drawn are asked on top, with π = 1.
    n: drawn, or all of `since` where there are fewer.
    """
    drawn = np.sort(rng.choice(since, min(n, since.size), replace=False)) if since.size else since
    chosen = {int(i): Rerun(int(i), True, min(1.0, n / since.size), "drawn at random") for i in drawn}
    for positions, why in ((ties, "tied at the top"), (new_scaffolds, "the first of its scaffold")):
        for i in positions.tolist():
            if len(chosen) < drawn.size + N_MORE:
                chosen.setdefault(i, Rerun(i, False, 1.0, why))
    return [chosen[i] for i in sorted(chosen)]
