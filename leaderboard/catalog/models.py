"""Who and what: benchmarks with their policy and tasks, agents with their scaffold and model."""

from typing import Any, ClassVar, TypeVar

import pghistory
import pgtrigger
from django.core.validators import BaseValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Now

from leaderboard.accounts.models import User

Row = TypeVar("Row", bound=models.Model)

NAME_LENGTH = 255
TASKS_LISTED = "tasks listed"
APPEND_ONLY = pgtrigger.Update | pgtrigger.Delete
AUDITED_OF_BENCHMARK = (
    "title",
    "visibility",
    "frozen_at",
    "frozen_reason",
    "hidden_at",
    "hidden_reason",
    "full_runs_only_at",
    "full_runs_only_reason",
)


def folded(name: str) -> str:
    """Lower the ASCII letters: what LOWER does under the collation "C" of the name columns, on any server."""
    return name.encode().lower().decode()


def stated_reason(flag: str) -> models.CheckConstraint:
    """A switch with a date is on, and then says why."""
    since, reason = f"{flag}_at", f"{flag}_reason"
    return models.CheckConstraint(
        condition=Q(**{f"{since}__isnull": True, reason: ""})
        | Q(Q(**{f"{since}__isnull": False}), ~Q(**{reason: ""})),
        name=f"%(class)s_{flag}_with_reason",
    )


class Visibility(models.TextChoices):
    PUBLIC = "public"
    UNLISTED = "unlisted"
    PRIVATE = "private"


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pghistory.AnyChange(*AUDITED_OF_BENCHMARK)),
    pghistory.ManualEvent(TASKS_LISTED),
    fields=["slug", *AUDITED_OF_BENCHMARK],
    model_name="BenchmarkChange",
)
class Benchmark(models.Model):
    slug = models.SlugField(
        max_length=100, unique=True, help_text="Part of every address; cannot be changed."
    )
    title = models.CharField(max_length=NAME_LENGTH)
    description = models.TextField(blank=True)
    url = models.URLField(max_length=2000, blank=True, help_text="Where the benchmark is described.")
    licence = models.CharField(max_length=NAME_LENGTH, blank=True, help_text="Of its outcomes.")
    citation = models.TextField(blank=True, help_text="How to cite it.")
    unit = models.CharField(max_length=NAME_LENGTH, default="% passed", help_text="Of a score.")
    visibility = models.CharField(max_length=16, choices=Visibility, default=Visibility.PUBLIC)
    frozen_at = models.DateTimeField(
        null=True, blank=True, help_text="No submission is accepted since this time."
    )
    frozen_reason = models.TextField(blank=True)
    hidden_at = models.DateTimeField(
        null=True, blank=True, help_text="Only members see the benchmark since this time."
    )
    hidden_reason = models.TextField(blank=True)
    full_runs_only_at = models.DateTimeField(
        null=True, blank=True, help_text="Every agent runs all tasks since this time."
    )
    full_runs_only_reason = models.TextField(blank=True)
    replay = models.JSONField(
        null=True,
        blank=True,
        help_text="Of a stored replay: its source (`of`, `board`) and results. The scheduler skips replays.",
    )
    data_version = models.BigIntegerField(
        default=0, help_text="Grows by one when counted results or active tasks change."
    )
    shown_version = models.BigIntegerField(
        default=0, help_text="Grows by one when anything else on a page changes."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(visibility__in=Visibility.values), name="benchmark_visibility_known"
            ),
            models.CheckConstraint(
                condition=Q(data_version__gte=0, shown_version__gte=0), name="benchmark_versions_not_negative"
            ),
            stated_reason("frozen"),
            stated_reason("hidden"),
            stated_reason("full_runs_only"),
        ]

    def __str__(self) -> str:
        return self.slug


class Role(models.TextChoices):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"


@pghistory.track(
    pghistory.InsertEvent(), pghistory.UpdateEvent(), pghistory.DeleteEvent(), model_name="MembershipChange"
)
class Membership(models.Model):
    """What a person may do with one benchmark. It names both, so it stands above accounts."""

    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "benchmark"], name="membership_once"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role} of {self.benchmark}"


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(),
    fields=["benchmark", "role", "accepted_at", "revoked_at"],
    model_name="InvitationChange",
)
class Invitation(models.Model):
    """A link that opens an account, or gives one a role; its secret is kept as a hash."""

    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role)
    trusted = models.BooleanField(
        default=False, help_text="Whether the account is trusted once the invitation is accepted."
    )
    sha256 = models.BinaryField(max_length=32, unique=True)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="invitation_expires_after_creation"
            ),
            models.CheckConstraint(
                condition=Q(accepted_at__isnull=True, accepted_by__isnull=True)
                | Q(accepted_at__isnull=False, accepted_by__isnull=False),
                name="invitation_accepted_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"invitation of {self.email} as {self.role} of {self.benchmark}"


class Duplicates(models.TextChoices):
    MEAN = "mean"
    LATEST = "latest"
    FIRST = "first"


class Assigning(models.TextChoices):
    SUBSET = "subset"
    STAGED = "staged"
    FULL = "full"


class Review(models.TextChoices):
    AUTOMATIC = "automatic"
    MANUAL = "manual"


class Strategy(models.TextChoices):
    MID_RANGE = "mid_range"
    GREEDY = "greedy"
    RANDOM = "random"
    EASIEST = "easiest"
    HARDEST = "hardest"
    STRATIFIED = "stratified"
    INFORMATION = "information"
    SPREAD = "spread"
    FORECAST = "forecast"


class Target(models.TextChoices):
    SUBSET = "subset"
    FULL = "full"
    DOMAIN = "domain"


class TaskGroups(models.TextChoices):
    """What tasks of one group or category are taken for, where tasks are a sample."""

    AUTO = "auto"
    NONE = "none"
    CATEGORY_STRATUM = "category:stratum"
    CATEGORY_CLUSTER = "category:cluster"
    GROUP_STRATUM = "group:stratum"
    GROUP_CLUSTER = "group:cluster"


class Estimator(models.TextChoices):
    COMPLETION = "completion"
    RIDGE = "ridge"
    LINE = "line"


class Resubmission(models.TextChoices):
    APPROVE = "approve"
    FREE = "free"


class Trust(models.TextChoices):
    """How far outcomes can be checked, ascending."""

    SELF_REPORTED = "self_reported"
    LOGS = "logs"
    VERIFIED = "verified"


class Weights(models.TextChoices):
    OPEN = "open"
    CLOSED = "closed"


class MissingPlaces(models.TextChoices):
    AUTO = "auto"
    GAP = "gap"
    ZERO = "zero"
    ZERO_LOADED = "zero_loaded"


def between(least: float, most: float = 2**31 - 1) -> list[BaseValidator]:
    return [MinValueValidator(least), MaxValueValidator(most)]


SHARE, SMALL = between(0, 1), models.PositiveSmallIntegerField


def choice(
    of: models.TextChoices | type[models.TextChoices], help_text: str, *, length: int = 16
) -> "models.CharField[Any, Any]":
    """One of some words, by default this one; of a class of words: none of them, unless one is stated."""
    more: dict[str, Any] = {"choices": type(of), "default": of}
    if isinstance(of, type):
        more = {"choices": of, "blank": True, "default": ""}
    return models.CharField(max_length=length, help_text=help_text, **more)


def amount(
    default: float,
    limits: list[BaseValidator],
    help_text: str,
    kind: type[models.Field] = models.PositiveIntegerField,
) -> Any:
    return kind(default=default, validators=limits, help_text=help_text)


def with_checks(model: type[Row]) -> type[Row]:
    """Let the database check what the choices of a column and its `between` say."""
    for column in (one for one in model._meta.concrete_fields if not one.is_relation):
        name, values = column.name, [value for value, _ in column.choices or ()]
        limits = [one.limit_value for one in column.deconstruct()[3].get("validators", ())]
        if values:
            condition = Q(**{f"{name}__in": [*values, ""] if column.blank else values})
        elif limits:
            condition = Q(**{f"{name}__range": limits})
        else:
            continue
        condition |= Q(**{f"{name}__isnull": True}) if column.null else Q()
        check = models.CheckConstraint(condition=condition, name=f"{model._meta.model_name}_{name}_allowed")
        model._meta.constraints = [*model._meta.constraints, check]
    return model


@with_checks
@pghistory.track(pghistory.InsertEvent(), fields=["benchmark", "number"], model_name="PolicyChange")
class Policy(models.Model):
    """The rules of a benchmark. Rows are numbered and never changed; the highest number is in force.

    What a field may say (`catalog.rules`), the form, the API and the command follow from its column, and so
    does what the core is told, where `selection.rules.Rules` has a field of its name (`studies.rules`). Those
    of `ADMINISTRATIVE` decide no number.
    """

    ADMINISTRATIVE: ClassVar = (
        "audit_share",
        "review",
        "members_only",
        "quota_per_account",
        "quota_per_agent",
        "backdating_days",
        "assignment_days",
        "rerun_days",
        "publish_every",
        "show_costs",
    )
    BASIC: ClassVar = ("missing", "universe", "assignment", "review")  # the others are advanced

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="policies")
    number = models.PositiveIntegerField()
    band_lo = amount(0.30, SHARE, "Lowest pass rate of a ranking task.", models.FloatField)
    band_hi = amount(0.70, SHARE, "Highest pass rate of a ranking task.", models.FloatField)
    strategy = choice(Strategy.MID_RANGE, "How the ranking tasks are chosen.")
    history_window = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=between(5),
        help_text="Pass rates use only this many of the latest agents with full runs, at least 5; "
        "empty: all.",
    )
    hysteresis = amount(
        0,
        between(0, 0.5),
        "How far outside the band a ranking task may lie and stay one.",
        models.FloatField,
    )
    subset_from = amount(
        15, between(5, 50), "The ranking tasks are fixed at this many complete agents (5 to 50).", SMALL
    )
    estimator = choice(
        Estimator, "How the full score is estimated from part of the tasks; empty: completion."
    )
    refit_every = amount(
        5, between(5, 10), "The calibration is fitted again after this many complete agents (5 to 10).", SMALL
    )
    default_target = choice(
        Target,
        "Which score ranks the agents; empty: the full score, or the subset if it orders agents better.",
        length=8,
    )
    groups = choice(
        TaskGroups.AUTO,
        "For the target domain: groups or categories of tasks are sampled whole (cluster) or within "
        "(stratum).",
    )
    missing = choice(
        MissingPlaces.AUTO,
        "What a missing result counts as: a gap (gap), a failure (zero), or a failure only in what an "
        "operator loads (zero_loaded). The first load with five agents decides (auto).",
    )
    resolved_from = models.TextField(
        blank=True, default="", help_text="Reason, if the first load with five agents chose it."
    )
    universe = models.JSONField(
        null=True,
        blank=True,
        help_text="Names of the tasks that count; `common` picks the tasks that 95% of the agents ran; "
        "empty: all.",
    )
    duplicates = choice(
        Duplicates.MEAN,
        "Which submissions of an agent count: all (their mean), the latest, or the first.",
        length=8,
    )
    counted_settings = models.JSONField(
        null=True,
        blank=True,
        help_text="Conditions to compare, as a list of objects with prompt_variant, judge and "
        "temperature; empty: those that the agents share.",
    )
    headline_from = choice(
        Trust,
        "Lowest trust level of agents in headlines and badges; empty: verified, once there are five "
        "verified agents.",
    )
    trial_noise = models.CharField(
        max_length=NAME_LENGTH,
        blank=True,
        default="",
        help_text="Run-to-run noise of another benchmark as a share of p(1 − p), and its name, such as 0.118 "
        "from Terminal-Bench. Used if no agent ran a task twice; empty: an upper bound.",
    )
    n_trials = amount(1, between(1, 32_767), "Trials to run on each task.", SMALL)
    resubmission = choice(
        Resubmission.APPROVE,
        "Whether an agent that took results back is ranked again at once or after approval.",
        length=8,
    )
    assignment = choice(
        Assigning.STAGED,
        "What a new agent runs: batches until its place is clear (staged), the ranking tasks (subset), or "
        "all tasks (full).",
        length=8,
    )
    podium = amount(
        3,
        between(1, 100),
        "Staged assignment: the top places; an agent stops once it cannot reach them.",
        SMALL,
    )
    staged_from = amount(5, between(5, 1_000), "Staged assignment starts at this many agents.", SMALL)
    draw_share = models.FloatField(
        null=True,
        blank=True,
        validators=SHARE,
        help_text="Share of stopped agents that run all tasks anyway, to check estimates; empty: a quarter "
        "until 30 full runs can be replayed, then a tenth.",
    )
    audit_share = amount(
        0.05, SHARE, "Share of extra tasks from outside the subset, to detect tuning.", models.FloatField
    )
    review = choice(Review.AUTOMATIC, "Whether a submission counts at once or waits for an operator.")
    members_only = models.BooleanField(default=True, help_text="Only members may submit.")
    quota_per_account = amount(100, between(1), "Submissions per account and UTC day, over all its tokens.")
    quota_per_agent = amount(20, between(1), "Submissions per agent and UTC day.")
    backdating_days = amount(30, between(0, 36_500), "Days that submitted_at may be before the submission.")
    assignment_days = amount(14, between(1, 36_500), "Days that an assignment stays open.")
    rerun_days = amount(21, between(1, 36_500), "Days until a rerun request expires.")
    publish_every = models.PositiveIntegerField(default=60, help_text="Seconds between two public boards.")
    show_costs = models.BooleanField(default=True, help_text="Visitors see costs.")
    base_seed = amount(0, between(0), "Seed of every random draw.", models.BigIntegerField)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "number"], name="policy_number_once"),
            models.CheckConstraint(condition=Q(band_lo__lt=F("band_hi")), name="policy_band_in_order"),
            models.CheckConstraint(condition=Q(hysteresis__lt=0.5), name="policy_hysteresis_below_half"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="policy_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"policy {self.number} of {self.benchmark}"


@pghistory.track(
    pghistory.UpdateEvent(condition=pghistory.AnyChange("retired_at")),
    fields=["benchmark", "retired_at"],
    model_name="TaskChange",
)
class Task(models.Model):
    """One task of a benchmark. Outcomes name it without a foreign key, so it is never deleted."""

    id = models.AutoField(primary_key=True)  # four bytes: it stands in every outcome
    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="tasks")
    name = models.CharField(max_length=NAME_LENGTH, db_collation="C")
    category = models.CharField(max_length=NAME_LENGTH, blank=True)
    group = models.CharField(
        max_length=NAME_LENGTH, blank=True, help_text="Common source of several tasks, such as a repository."
    )
    position = models.PositiveIntegerField(default=0, help_text="Order of display only.")
    since = models.BigIntegerField(
        null=True, blank=True, help_text="Data version that added it; empty: the first."
    )
    retired_at = models.DateTimeField(null=True, blank=True)
    retired_reason = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["benchmark", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "name"], name="task_name_once"),
            stated_reason("retired"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="task_is_never_deleted", operation=pgtrigger.Delete)]

    def __str__(self) -> str:
        return self.name


class Scaffold(models.Model):
    """The program around a model."""

    name = models.CharField(max_length=NAME_LENGTH, db_collation="C")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(Lower("name"), name="scaffold_name_once")]

    def __str__(self) -> str:
        return self.name


class Model(models.Model):
    """What the scaffold calls."""

    name = models.CharField(max_length=NAME_LENGTH, db_collation="C")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(Lower("name"), name="model_name_once")]

    def __str__(self) -> str:
        return self.name


@with_checks
@pghistory.track(
    pghistory.UpdateEvent("renamed", condition=pghistory.AnyChange("name")),
    pghistory.UpdateEvent("merged", condition=pghistory.AnyChange("merged_into")),
    fields=["benchmark", "merged_into"],  # no name: an erased one would stand here for good
    model_name="AgentChange",
)
class Agent(models.Model):
    """A scaffold around a model, in one version, on one benchmark."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="agents")
    name = models.CharField(max_length=NAME_LENGTH, db_collation="C")
    scaffold = models.ForeignKey(Scaffold, models.PROTECT, related_name="agents")
    model = models.ForeignKey(Model, models.PROTECT, related_name="agents")
    version = models.CharField(max_length=NAME_LENGTH, blank=True)
    organisation = models.CharField(max_length=NAME_LENGTH, blank=True)
    weights = choice(Weights, "Weights of its model: open or closed; empty: not stated.", length=8)
    owner = models.ForeignKey(
        User,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="agents",
        help_text="First submitter; empty if an operator loaded it.",
    )
    merged_into = models.ForeignKey(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="merged",
        help_text="Its results count for that agent, and no board lists it.",
    )
    merged_version = models.BigIntegerField(
        null=True, blank=True, help_text="First data version of the merge."
    )

    class Meta:
        ordering: ClassVar = ["benchmark", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint("benchmark", Lower("name"), name="agent_name_once"),
            models.CheckConstraint(
                condition=Q(merged_into__isnull=True, merged_version__isnull=True)
                | Q(merged_into__isnull=False, merged_version__isnull=False),
                name="agent_merged_with_version",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AgentAlias(models.Model):
    """A name that an agent had before it was renamed or merged; deliveries under it are that agent's."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="aliases")
    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="+")
    name = models.CharField(max_length=NAME_LENGTH, db_collation="C")
    reason = models.TextField()
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("benchmark", Lower("name"), name="agentalias_name_once"),
            models.CheckConstraint(condition=~Q(reason=""), name="agentalias_with_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.name}, now {self.agent}"
