"""A policy row as the rules that the core takes, and what of it enters the digest."""

import hashlib
import json
from typing import Any, cast

from analytics.record import Condition, Counting
from leaderboard.catalog.models import Policy
from leaderboard.studies.models import TaskSubset
from selection.rules import Rules, Target

# What decides numbers; quotas, deadlines and who may see costs do not.
FIELDS = (
    "band_lo",
    "band_hi",
    "strategy",
    "history_window",
    "hysteresis",
    "subset_from",
    "estimator",
    "refit_every",
    "default_target",
    "groups",
    "n_trials",
    "base_seed",
    "duplicates",
    "counted_settings",
    "missing",
    "universe",
    "resubmission",
    "headline_from",
    "assignment",
    "podium",
    "staged_from",
    "draw_share",
    "trial_noise",
)


def policy_values(policy: Policy) -> dict[str, Any]:
    return {field: getattr(policy, field) for field in FIELDS}


def rules_sha256(policy: Policy, **more: Any) -> str:
    """SHA-256 of the policy's values and of what else is given by name."""
    content = {"policy": policy_values(policy), **more}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def rules_of(policy: Policy, subset: TaskSubset | None = None) -> Rules:
    """The rules of a policy; the conditions compared are those of the subset, once it is fixed."""
    return Rules(
        lo=policy.band_lo,
        hi=policy.band_hi,
        history_window=policy.history_window,
        hysteresis=policy.hysteresis,
        strategy=policy.strategy,
        estimator=policy.estimator,
        target=cast("Target", policy.default_target) or None,
        groups=policy.groups,
        subset_from=policy.subset_from,
        refit_every=policy.refit_every,
        n_trials=policy.n_trials,
        seed=policy.base_seed,
        headline_from=policy.headline_from,
        trial_noise=policy.trial_noise,
        counting=counting_of(policy, subset),
    )


def counting_of(policy: Policy, subset: TaskSubset | None = None) -> Counting:
    settings = policy.counted_settings
    if settings is None and subset is not None:
        settings = subset.compared
    return Counting(
        duplicates=cast(Any, policy.duplicates),
        settings="comparable" if settings is None else tuple(condition_of(one) for one in settings),
        missing=cast(Any, policy.missing),
        universe="all" if policy.universe is None else tuple(policy.universe),
    )


def condition_of(setting: dict[str, Any]) -> Condition:
    return Condition(*(setting.get(facet) for facet in Condition._fields))
