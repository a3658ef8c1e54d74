"""A simulated benchmark that lives: agents ask for an assignment, run it, and deliver, day by day."""

from datetime import timedelta

import numpy as np
from scipy.special import expit

from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.services import AgentDescription
from leaderboard.operations.assignments import assign
from leaderboard.operations.intake import submit
from leaderboard.operations.services import issue_token, recompute
from leaderboard.submissions.models import Submission
from tests.leaderboard.trusting import trusted
from tests.toys import AS_OF, load_text, rows_text


class World:
    """Sixteen agents that ran all tasks, loaded in one file; newcomers follow. Outcomes as by Rasch."""

    def __init__(self, *, n_founders=16, n_tasks=40, seed=1, cost=None):
        self.rng, self.now = np.random.default_rng(seed), AS_OF
        self.tasks = [f"t{j:02d}" for j in range(n_tasks)]
        self.difficulty = self.rng.permutation(np.linspace(-1.6, 1.6, n_tasks))
        self.ran, self.about = {}, {}
        rows = []
        for i in range(n_founders):
            marks = self._marks(self.rng.normal())
            rows += [
                {"agent": f"f{i:02d}", "scaffold": "Loop", "task": task, "outcome": mark}
                | ({} if cost is None else {"cost_usd": round(cost * self.rng.uniform(0.9, 1.1), 4)})
                for task, mark in zip(self.tasks, marks, strict=True)
            ]
        load_text(rows_text(rows))
        self.cost = cost
        self.token = token("ada@example.org")

    @property
    def benchmark(self):
        return Benchmark.objects.get(slug="toy")

    def _marks(self, theta):
        return (self.rng.random(len(self.tasks)) < expit(theta - self.difficulty)).astype(int).tolist()

    def wait(self, days=1):
        self.now += timedelta(days=days)

    def board(self):
        return recompute(benchmark=self.benchmark, as_of=self.now)[0]

    def newcomer(self, theta=None, *, scaffold="Loop", cost=1.0, fails=0.0):
        """Let a new agent ask, run what it is asked for, and deliver; return its name and its assignment."""
        self.wait()
        name = f"n{len(self.ran):03d}"
        self.ran[name] = self._marks(self.rng.normal() if theta is None else theta)
        self.about[name] = {"name": name, "scaffold": scaffold, "model": f"M {name}"}
        return name, self.run(name, cost=cost, fails=fails)

    def ask(self, name):
        described = AgentDescription(*(self.about[name][key] for key in ("name", "scaffold", "model")))
        return assign(benchmark=self.benchmark, agent=described, by=self.token.user, as_of=self.now)

    def run(self, name, *, cost=1.0, fails=0.0, lacks=0):
        """Let an agent do what it is asked for now, but for so many tasks; return the assignment."""
        assignment = self.ask(name)
        asked = dict(self.benchmark.tasks.filter(pk__in=assignment.tasks).values_list("name", "id"))
        names = sorted(asked)[lacks:]
        broken = set(names[: round(fails * len(names))])
        rows = [
            {"task": task, "trial": 1, "outcome": self.ran[name][self.tasks.index(task)]}
            | ({} if self.cost is None else {"cost_usd": self.cost * cost})
            | ({"valid": False} if task in broken else {})
            for task in names
        ]
        self.deliver(name, rows)
        assignment.refresh_from_db()
        return assignment

    def deliver(self, name, rows, **more):
        more = {"submitted_at": f"{self.now:%Y-%m-%d}"} | more
        return deliver(self.token, rows, self.about[name], self.now, **more)


def deliver(by, rows, agent="newcomer", as_of=AS_OF, *, dry_run=False, key=None, **more):
    """Submit outcomes of an agent, by its name or as it is described, and return the receipt."""
    described = (
        {"name": agent, "scaffold": "Loop", "model": f"M {agent}"} if isinstance(agent, str) else agent
    )
    body = {"agent": described, "outcomes": rows} | more
    toy, how = Benchmark.objects.get(slug="toy"), {"idempotency_key": key, "as_of": as_of, "dry_run": dry_run}
    return submit(benchmark=toy, token=by, body=body, **how).content


def stored(receipt):
    return Submission.objects.get(uuid=receipt["id"])


def token(email, scope="submit", *, is_trusted=True):
    life = timedelta(days=300)
    made = issue_token(email=email, slug="toy", scope=scope, name="ci", as_of=AS_OF, life=life)[0]
    if is_trusted:
        trusted(email)
    return made
