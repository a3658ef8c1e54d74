"""What verified agents did, kept so that a delivery is judged by it without a fit; the arithmetic stands in
`selection.plausibility`.

What the core is asked for is imported where it is used: intake names this module.
"""

import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

from analytics.record import AgentRow
from leaderboard.studies.models import VerifiedReference
from leaderboard.studies.receipt import AgentContext

if TYPE_CHECKING:
    from leaderboard.studies.records import Snapshot
    from selection.plausibility import Reference

KIND = "<f8"


def get_or_compute_reference(now: "Snapshot") -> None:
    """Keep what verified agents did, where it has changed; else all that came was judged by it already."""
    record = now.record
    verified = [i for i, one in enumerate(record.about) if one.trust == "verified"]
    means = np.ascontiguousarray(record.table.means[verified], KIND)
    sha256 = hashlib.sha256(means.tobytes() + repr(now.task_ids).encode()).hexdigest()
    same = VerifiedReference.objects.filter(benchmark=now.benchmark, sha256=sha256)
    if same.update(judged_upto=now.data_version):
        return
    from selection.plausibility import reference

    computed = reference(means, is_pass_fail=not any(record.n_graded[i] for i in verified))
    made = {
        "sha256": sha256,
        "tasks": now.task_ids,
        "n_agents": len(verified),
        "is_pass_fail": computed.is_pass_fail,
        "arrays": zlib.compress(means.tobytes() + computed.difficulties.astype(KIND).tobytes()),
    }
    VerifiedReference.objects.update_or_create(benchmark=now.benchmark, defaults=made)


def why_implausible(row: AgentRow | None, of: AgentContext) -> str:
    """Say what is implausible of all that stands for an agent; empty where nothing is.

    It is judged on the tasks that the last recompute read too. Of verified agents nothing else is read.
    """
    stored = VerifiedReference.objects.filter(benchmark=of.policy.benchmark).first()
    if row is None or stored is None:
        return ""
    from selection.plausibility import implausible

    _, mine, theirs = np.intersect1d(list(of.names), stored.tasks, assume_unique=True, return_indices=True)
    verified = _reference(stored).on(theirs)
    return implausible(verified, row.means[mine], row.n_trials[mine], n_graded=row.n_graded)


def _reference(stored: VerifiedReference) -> "Reference":
    from selection.plausibility import Reference

    values = np.frombuffer(zlib.decompress(stored.arrays), KIND).reshape(-1, len(stored.tasks))
    return Reference(values[:-1], values[-1], stored.is_pass_fail)
