"""Taking names out of what is kept for good: the one door through the triggers that forbid every change.

An agent's name becomes a tombstone wherever it stands: in the catalog, on boards, in studies, evidence,
events, reports, and the reasons that operators gave. Scores, ranks and digests stay as they were published,
so that a digest then speaks for what was there before. Names of scaffolds and models belong to everybody and
stay.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from secrets import token_hex
from typing import Any

import pgtrigger
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.db import models, transaction
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from pghistory.models import Context

from leaderboard.accounts.models import User
from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Agent, AgentAlias, Benchmark, Invitation, Task
from leaderboard.catalog.services import bump_shown_version
from leaderboard.errors import Conflict
from leaderboard.operations.acting import RECORDED, acting
from leaderboard.operations.models import (
    Alert,
    Assignment,
    Dispute,
    Erasure,
    Event,
    JobRun,
    Notification,
    RerunAgent,
    RerunRequest,
    Reselection,
    Webhook,
)
from leaderboard.studies.models import DriftCheck, StagedStudy, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.submissions.models import (
    AccountTrust,
    Approval,
    IdempotencyKey,
    InvalidConfirmation,
    MachineCheck,
    OutcomeDetail,
    StatusChange,
    Submission,
    Verification,
)
from leaderboard.submissions.services import bump_data_version

SHORTEST_IN_TEXT = 4  # letters: a shorter name would be found in words that are none
# Keys of JSON under which names and sentences stand. What stands elsewhere, keys too, may read like a name
# and is none: an agent may be called "rank".
NAMING = frozenset({"agent", "agents", "may_be_first", "reason", "text", "why"})
FORBIDDING = (
    "boards.Board:board_is_append_only",
    "boards.Entry:entry_is_append_only",
    "catalog.BenchmarkChange:append_only",
    "operations.Assignment:assignment_tasks_never_change",
    "operations.Erasure:erasure_is_append_only",
    "operations.Event:event_never_changes",
    "operations.ReselectionChange:append_only",
    "operations.WebhookChange:append_only",
    "studies.StagedStudy:study_is_append_only",
    "studies.DriftCheck:study_is_append_only",
    "studies.TaskSubset:tasksubset_is_append_only",
    "studies.ValidationStudy:study_is_append_only",
    "studies.VarianceStudy:study_is_append_only",
    "submissions.AccountTrust:accounttrust_is_append_only",
    "submissions.MachineCheck:machinecheck_is_append_only",
    "submissions.Approval:approval_is_append_only",
    "submissions.InvalidConfirmation:confirmation_is_append_only",
    "submissions.OutcomeDetail:outcomedetail_is_append_only",
    "submissions.StatusChange:statuschange_is_append_only",
    "submissions.Submission:submission_changes_status_only",
    "submissions.Verification:verification_is_append_only",
)


COMES_BACK = "A file that has the name brings it back when it is loaded again. Delete the name there first."


def erased_already() -> Conflict:
    return Conflict("These names are already erased.", code="erased_already")


# Models, how a row is found from its benchmark, and the fields in which names stand
_SWITCHES = ("frozen_reason", "hidden_reason", "full_runs_only_reason")
PLACES: tuple[tuple[type[models.Model], str, tuple[str, ...]], ...] = (
    (Benchmark, "pk", _SWITCHES),
    (apps.get_model("catalog.BenchmarkChange"), "pgh_obj", _SWITCHES),
    (Task, "benchmark", ("retired_reason",)),
    (TaskSubset, "benchmark", ("reason",)),
    (Board, "benchmark", ("content",)),
    (DriftCheck, "benchmark", ("result",)),
    (ValidationStudy, "benchmark", ("result",)),
    (VarianceStudy, "benchmark", ("result",)),
    (StagedStudy, "benchmark", ("result",)),
    (Alert, "benchmark", ("evidence", "closed_reason")),
    (RerunRequest, "benchmark", ("reason", "closed_reason")),
    (RerunAgent, "request__benchmark", ("why",)),
    (Assignment, "agent__benchmark", ("reason",)),
    (Reselection, "benchmark", ("content", "reason", "decided_reason")),
    (apps.get_model("operations.ReselectionChange"), "benchmark", ("decided_reason",)),
    (Webhook, "benchmark", ("disabled_reason",)),
    (apps.get_model("operations.WebhookChange"), "benchmark", ("disabled_reason",)),
    (Event, "benchmark", ("payload",)),
    (JobRun, "benchmark", ("told", "error", "reason")),
    (Dispute, "benchmark", ("text", "decided_reason")),
    (StatusChange, "submission__agent__benchmark", ("reason",)),
    (MachineCheck, "submission__agent__benchmark", ("found",)),
    (InvalidConfirmation, "submission__agent__benchmark", ("reason",)),
    (Approval, "agent__benchmark", ("reason",)),
    (Verification, "submission__agent__benchmark", ("note",)),
    (AccountTrust, "benchmark", ("reason",)),
    (AgentAlias, "benchmark", ("reason",)),
    (IdempotencyKey, "benchmark", ("body",)),
    (Erasure, "benchmark", ("reason",)),
)


@transaction.atomic
def erase_agent(*, agent: Agent, by: User | None, reason: str, as_of: datetime) -> Erasure:
    """Replace every name of an agent by a tombstone, and drop what came beside its outcomes.

    Stored replays of its benchmark lose it likewise.
    """
    rows = Agent.objects.select_related("benchmark").select_for_update(no_key=True, of=("self",))
    locked = rows.get(pk=agent.pk)
    if Erasure.objects.filter(benchmark=locked.benchmark, tombstone=locked.name).exists():
        raise erased_already()
    own = locked.aliases.exclude(name__in=locked.merged.values("name"))
    names, tombstone = [locked.name, *own.values_list("name", flat=True)], f"erased agent {locked.pk}"
    others = locked.benchmark.agents.exclude(pk=locked.pk).filter(name__iexact=tombstone)
    before = AgentAlias.objects.filter(benchmark=locked.benchmark, name__iexact=tombstone)
    if others.exists() or before.exists():
        tombstone += f" ({token_hex(8)})"  # another agent has taken the name beforehand
    reason = replacing(names, tombstone)(reason)
    with acting(by=by, reason=reason), pgtrigger.ignore(*FORBIDDING):
        replaced = replacing(names, tombstone)
        _replace(_places(locked.benchmark), names, replaced)
        lines = Entry.objects.filter(board__benchmark=locked.benchmark)
        for entry in _holding(lines, ("line",), names):
            entry.line |= {field: replaced(entry.line[field]) for field in ("flags", "at")}
            entry.save(update_fields=["line"])
        # As one that was merged
        AgentAlias.objects.filter(benchmark=locked.benchmark, name=locked.name).delete()
        locked.aliases.exclude(name__in=locked.merged.values("name")).delete()
        for entry in Entry.objects.filter(agent=locked):
            entry.name = tombstone
            entry.line |= {"organisation": "", "version": "", "links": {}}
            entry.save(update_fields=["name", "line"])
        delivered = Submission.objects.filter(agent=locked)
        delivered.exclude(links={}).update(links={})
        OutcomeDetail.objects.filter(submission_id__in=delivered.values("pk")).update(metadata=None)
        Agent.objects.filter(pk=locked.pk).update(name=tombstone, organisation="", version="")
        of = {"benchmark": locked.benchmark, "what": "agent", "tombstone": tombstone}
        erasure = Erasure.objects.create(reason=reason, at=as_of, by=by, **of)
        bump_shown_version(benchmark=locked.benchmark)
        bump_data_version(benchmark=locked.benchmark)
    for replayed in Agent.objects.filter(benchmark__replay__of=locked.benchmark.slug, name__in=names):
        erase_agent(agent=replayed, by=by, reason=reason, as_of=as_of)
    return erasure


@transaction.atomic
def erase_account(*, user: User, by: User | None, reason: str, as_of: datetime) -> Erasure:
    """Close an account and replace its address and name by a tombstone; what it delivered stays.

    They go from what people wrote about any benchmark too.
    """
    locked = User.objects.select_for_update().get(pk=user.pk)
    tombstone = f"erased-{locked.pk}@erased.invalid"
    if locked.email == tombstone:
        raise erased_already()
    others = EmailAddress.objects.filter(user=locked).values_list("email", flat=True)
    addresses = {locked.email, *others}
    names = sorted(filter(None, {*addresses, locked.name}), key=len, reverse=True)
    replaced = replacing(names, tombstone)
    reason = replaced(reason)
    with acting(by=by, reason=reason), pgtrigger.ignore(*FORBIDDING):
        _replace(_written(), names, replaced)
        for address in addresses:
            invited = Invitation.objects.filter(email=address)
            invited.filter(accepted_at=None, revoked_at=None).update(revoked_at=as_of)
            invited.update(email=tombstone)
            Notification.objects.filter(email=address).update(email=tombstone)
            Dispute.objects.filter(contact=address).update(contact="")
        EmailAddress.objects.filter(user=locked).delete()
        Authenticator.objects.filter(user=locked).delete()
        locked.memberships.all().delete()
        locked.tokens.filter(revoked_at=None).update(revoked_at=as_of)
        locked.tokens.update(name=tombstone)
        locked.email, locked.name = tombstone, ""
        locked.is_active = locked.is_staff = locked.is_superuser = False
        locked.set_unusable_password()
        locked.save()
        return Erasure.objects.create(what="account", tombstone=tombstone, reason=reason, at=as_of, by=by)


def _places(benchmark: Benchmark) -> Iterator[tuple[models.QuerySet[Any], tuple[str, ...]]]:
    """The rows of a benchmark, and why they were changed."""
    for model, path, fields in PLACES:
        yield model._default_manager.filter(**{path: benchmark.pk}), fields
    changed = [
        Q(pk__in=apps.get_model(label).objects.filter(**{path: benchmark.pk}).values("pgh_context"))
        for label, path in RECORDED.items()
        if path
    ]
    yield Context.objects.filter(reduce(or_, changed)), ("metadata",)


def _written() -> Iterator[tuple[models.QuerySet[Any], tuple[str, ...]]]:
    """What people wrote about any benchmark, and its events; agents in other JSON stay."""
    yield Event.objects.all(), ("payload",)
    for model, _, fields in PLACES:
        if texts := tuple(name for name in fields if isinstance(model._meta.get_field(name), TextField)):
            yield model._default_manager.all(), texts
    yield Context.objects.all(), ("metadata",)


def _replace(
    places: Iterator[tuple[models.QuerySet[Any], tuple[str, ...]]],
    names: Sequence[str],
    replaced: Callable[[Any], Any],
) -> None:
    for rows, fields in places:
        for row in _holding(rows, fields, names):
            for field in fields:
                setattr(row, field, replaced(getattr(row, field)))
            row.save(update_fields=fields)


def _holding(rows: models.QuerySet[Any], fields: Sequence[str], names: Sequence[str]) -> models.QuerySet[Any]:
    """The rows in which one of the names may stand; JSON keeps letters as they are."""
    as_text = {f"{field}_text": Cast(field, TextField()) for field in fields}
    anywhere = Q()
    for name in names:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        for field in as_text:
            anywhere |= Q(**{f"{field}__icontains": name}) | Q(**{f"{field}__icontains": escaped})
    return rows.alias(**as_text).filter(anywhere)


def replacing(names: Sequence[str], tombstone: str) -> Callable[[Any], Any]:
    """Return what replaces the names in a text, or in JSON where names stand: whole, and inside sentences.

    An address is one in any case.
    """
    inside = [
        f"(?i:{re.escape(name)})" if "@" in name else re.escape(name)
        for name in names
        if len(name) >= SHORTEST_IN_TEXT
    ]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(inside)})(?!\w)") if inside else None

    def replaced(value: Any, under: str = "text") -> Any:
        if isinstance(value, str):
            if value in names:
                return tombstone if under in NAMING else value
            is_prose = under in NAMING or " " in value
            return pattern.sub(tombstone, value) if pattern and is_prose else value
        if isinstance(value, dict):
            return {key: replaced(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [replaced(one, under) for one in value]
        return value

    return replaced
