"""A benchmark with a row for every route, and tokens of everybody who may or may not see it."""

from datetime import timedelta
from functools import cached_property
from unittest.mock import patch

from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.accounts.services import create_token
from leaderboard.catalog.models import Agent, Membership, Policy, Role
from leaderboard.catalog.services import AgentDescription
from leaderboard.operations.assignments import assign
from leaderboard.operations.intake import submit
from leaderboard.operations.models import Alert, AlertLevel, RerunAgent, RerunRequest
from leaderboard.operations.reselections import propose
from leaderboard.operations.services import check_drift, measure_variance, recompute
from leaderboard.studies.models import ESTIMATOR_VERSION, StagedStudy
from tests.kept import stored
from tests.leaderboard.conftest import no_replay
from tests.leaderboard.stored_validation import store
from tests.toys import AS_OF, moved

ANONYMOUS, VIEWER, SUBMITTER, OTHER, STRANGER, OPERATOR = KINDS = (
    "anonymous",
    "viewer",
    "submitter",
    "other submitter",
    "stranger",
    "operator",
)
ROLES = {VIEWER: Role.VIEWER, SUBMITTER: Role.SUBMITTER, OTHER: Role.SUBMITTER, OPERATOR: Role.OPERATOR}


def tokens(benchmark):
    """The secret of each kind, by kind; scopes are the most that one could ask for."""
    found = {ANONYMOUS: None}
    now = timezone.now()
    for kind in KINDS[1:]:
        user = User.objects.create_user(f"{kind.replace(' ', '-')}@example.org", "a long road to the fair")
        if kind in ROLES:
            Membership.objects.create(user=user, benchmark=benchmark, role=ROLES[kind])
        made = {"benchmarks": [], "created_at": now, "expires_at": now + timedelta(days=9)}
        found[kind] = create_token(user=user, name="ci", scopes=["read", "submit", "operate"], **made)
    return found


class World:
    """16 agents that fixed a subset, 16 that moved it, and an agent of the submitter."""

    def __init__(self):
        asks, estimates = (vars(Policy._meta.get_field(name)) for name in ("assignment", "estimator"))
        with (
            patch.dict(asks, _get_default=lambda: "subset"),
            patch.dict(estimates, _get_default=lambda: "ridge"),
            patch("selection.staged.study.replayed", no_replay),  # of the proposal, which nobody looks into
        ):
            vars(self).update(stored("a row for every route", self._made))

    def _made(self):
        self.benchmark = moved()
        store(self.benchmark)
        measure_variance(benchmark=self.benchmark, as_of=AS_OF)
        refused = {"available": False, "reason": "for this test", "agents": 32}
        kept = {"policy": self.benchmark.policies.get(), "rules": "", "created_at": AS_OF, "result": refused}
        StagedStudy.objects.create(
            benchmark=self.benchmark, data_version=1, estimator_version=ESTIMATOR_VERSION, **kept
        )
        self.board, _ = recompute(benchmark=self.benchmark, as_of=AS_OF)
        self.subset = self.benchmark.subsets.get()
        made = tokens(self.benchmark)
        self.tokens = {kind: one[0] if one else None for kind, one in made.items()}
        self.secrets = {kind: one[1] if one else None for kind, one in made.items()}
        self._deliver()
        self._watch()
        return dict(vars(self))

    def _deliver(self):
        token, now = self.tokens[SUBMITTER], timezone.now()
        described = AgentDescription("newcomer", "Tree", "Model 9")
        self.assignment = assign(benchmark=self.benchmark, agent=described, by=token.user, as_of=now)
        body = {
            "agent": {"name": "newcomer", "scaffold": "Tree", "model": "Model 9"},
            "outcomes": [{"task": f"t{j:02d}", "trial": 1, "outcome": j % 2} for j in range(18)],
        }
        receipt = submit(
            benchmark=self.benchmark, token=token, body=body, idempotency_key=None, as_of=timezone.now()
        )
        self.submission = receipt.content["id"]
        self.agent = Agent.objects.get(name="newcomer")

    def _watch(self):
        now = timezone.now()
        check, _ = check_drift(benchmark=self.benchmark, as_of=AS_OF)
        self.check = check
        self.request = RerunRequest.objects.create(
            benchmark=self.benchmark,
            kind="validation",
            subset=self.subset,
            reason="drawn",
            n_tasks=20,
            opened_at=now,
            deadline=now + timedelta(days=9),
        )
        asked = {"sampled": True, "inclusion": 0.5, "why": "drawn", "n_lacking": 2}
        RerunAgent.objects.create(request=self.request, agent=self.agent, **asked)
        Alert.objects.create(
            benchmark=self.benchmark,
            subset=self.subset,
            monitor="fidelity",
            level=AlertLevel.ALERT,
            opened_by=check,
            latest=check,
            evidence={"rho": 0.7},
            request=self.request,
            opened_at=now,
        )
        self.reselection = propose(benchmark=self.benchmark, by=None, reason="moved", as_of=AS_OF)

    @cached_property
    def ids(self):
        """What stands in an address, by the name that a route gives it."""
        first = Agent.objects.get(name="a00")
        return {
            "agent": first.pk,
            "reports": first.pk,
            "assignment": self.assignment.uuid,
            "subset": 1,
            "board-numbered": self.board.number,
            "entries": self.board.number,
            **{f"boards_{kind}": self.board.number for kind in ("csv", "ndjson", "parquet")},
            "validation": self.benchmark.validationstudy_set.get().pk,
            "calibration": self.subset.calibrations.first().pk,
            "variance": self.benchmark.variancestudy_set.get().pk,
            "staged_study": self.benchmark.stagedstudy_set.latest("pk").pk,
            "drift": self.check.pk,
            "reselection": self.reselection.pk,
            "approve": self.reselection.pk,
            "reject": self.reselection.pk,
            "submission": self.submission,
            "withdraw": self.submission,
        }
