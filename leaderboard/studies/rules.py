"""A policy row as the rules that the core takes, and what of it enters the digest."""

import hashlib
import json
from dataclasses import fields
from secrets import token_urlsafe
from typing import Any, cast

from django.conf import settings
from django.utils.crypto import salted_hmac

from analytics.drift.tuning import n_audit_tasks as n_audit_tasks
from analytics.record import Condition, Counting
from leaderboard import postgres
from leaderboard.catalog.models import MissingPlaces, Policy
from leaderboard.catalog.rules import RULES
from leaderboard.studies.models import TaskSubset
from selection.rules import Rules

FIELDS = tuple(field for field in RULES if field not in Policy.ADMINISTRATIVE)
"""What decides numbers; quotas, deadlines and who may see costs do not."""
NAMES = {"lo": "band_lo", "hi": "band_hi", "target": "default_target", "seed": "base_seed"}


def policy_values(policy: Policy) -> dict[str, Any]:
    return {field: getattr(policy, field) for field in FIELDS}


def rules_sha256(policy: Policy, **more: Any) -> str:
    """SHA-256 of the policy's values and of what else is given by name."""
    content = {"policy": policy_values(policy), **more}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def rules_of(policy: Policy, subset: TaskSubset | None = None) -> Rules:
    """The rules of a policy; the conditions compared are those of the subset, once it is fixed."""
    same = (field.name for field in fields(Rules) if field.name in RULES)
    values = {name: getattr(policy, name) for name in same}
    values |= {name: getattr(policy, field) for name, field in NAMES.items()}
    values["target"] = values["target"] or None
    return Rules(**values, counting=counting_of(policy, subset))


def counting_of(policy: Policy, subset: TaskSubset | None) -> Counting:
    settings = policy.counted_settings
    if settings is None and subset is not None:
        settings = subset.compared
    return Counting(
        duplicates=cast(Any, policy.duplicates),
        settings="comparable" if settings is None else tuple(condition_of(one) for one in settings),
        missing="gap" if policy.missing == MissingPlaces.AUTO else cast(Any, policy.missing),
        universe="all" if policy.universe is None else tuple(policy.universe),
    )


def condition_of(setting: dict[str, Any]) -> Condition:
    return Condition(*(setting.get(facet) for facet in Condition._fields))


# ------------------------------------------------------------------------------------------------------ draws


def draw_digest(what: str, about: str) -> bytes:
    return salted_hmac(what, about, secret=_secret(), algorithm="sha256").digest()


def _secret() -> str:
    """The SECRET_KEY; the embedded server has another one at each start, and keeps a key for this instead."""
    if settings.EMBEDDED:
        return postgres.secret_in(postgres.home().joinpath("draw.key"), token_urlsafe)
    return settings.SECRET_KEY
