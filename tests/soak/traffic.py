"""People who read, and CI jobs that deliver, at the pace of people; every request is timed and kept."""

import http.client
import json
import random
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bandstand_client import Client, NotReachable, Payload, Refused
from tests.leaderboard.service import Service

SLUG = "soak"
N_TASKS, N_LOADED, N_SUBMITTED = 20, 10, 16  # agents: loaded before, and submitted at most
N_READERS, N_SUBMITTERS = 4, 2
READ_EVERY, SUBMIT_EVERY = 0.4, 4.0  # seconds that one of them lets pass, on average
OK, UNAVAILABLE, BROKEN, WRONG = "ok", "503", "broken", "wrong"
PAGES = {
    "home": "/",
    "board": "/b/{slug}",
    "board, sorted": "/b/{slug}?view=all&sort=-date&find={find}",
    "agent": "/b/{slug}/agents/{agent}",
    "task": "/b/{slug}/tasks/{task}",
    "tasks": "/b/{slug}/tasks",
    "compare": "/b/{slug}/compare?agents={agent},{other}",
    "validity": "/b/{slug}/validity",
    "uncertainty": "/b/{slug}/uncertainty",
    "health": "/b/{slug}/health",
    "history": "/b/{slug}/history",
    "feed": "/b/{slug}/feed",
    "badge": "/b/{slug}/badge.svg",
    "API board": "/api/v1/benchmarks/{slug}/board",
    "API agents": "/api/v1/benchmarks/{slug}/agents",
    "API boards": "/api/v1/benchmarks/{slug}/boards",
    "API drift": "/api/v1/benchmarks/{slug}/studies/drift",
    "API outcomes": "/api/v1/benchmarks/{slug}/outcomes.csv",
}


@dataclass
class Ledger:
    """What was asked and answered: the seconds of each good answer by kind, how often what else came."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def note(self, kind: str, seconds: float, answer: str, told: str = "") -> None:
        with self.lock:
            self.answers[kind, answer] += 1
            if answer == OK:
                self.seconds.setdefault(kind, []).append(seconds)
            if answer == WRONG:
                self.wrong.append(f"{datetime.now(UTC):%H:%M:%S} {kind}: {told[:300]}")

    def n(self, answer: str) -> int:
        return sum(n for (_, one), n in self.answers.items() if one == answer)


@dataclass
class Delivered:
    """What the service accepted, by its id: the body as it was sent."""

    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)


def benchmark(service: Service, slug: str) -> str:
    """Load what was there before, set the rules, and give a token."""
    lines = ["benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"]
    for agent, row in passed(N_LOADED, seed=1, prefix="old").items():
        lines += [
            f"Soak,{agent},Loop,Model {agent},2026-01-05,t{j:02d},1,{int(x)}" for j, x in enumerate(row)
        ]
    service.load("\n".join(lines) + "\n", slug)
    rules = ("publish_every=2", "subset_from=16", "quota_per_account=100000", "quota_per_agent=100000")
    service.manage("policy", slug, "--set", *rules, "resubmission=free")
    return service.token(slug)


def passed(n: int, *, seed: int, prefix: str) -> dict[str, Any]:
    """Agents of drawn ability on tasks of spread difficulty (Rasch)."""
    rng = np.random.default_rng(seed)
    distance = rng.uniform(-1.5, 1.5, n)[:, None] - np.linspace(-1.5, 1.5, N_TASKS)
    return {
        f"{prefix}{i:03d}": row
        for i, row in enumerate(rng.random(distance.shape) < 1 / (1 + np.exp(-distance)))
    }


def bodies(submitter: int) -> Any:
    """Runs of this submitter's agents, without end: the first of each, then their second, and so on."""
    own = passed(N_SUBMITTED // N_SUBMITTERS, seed=100 + submitter, prefix=f"new{submitter}-")
    draw, run = random.Random(submitter), 0
    today = datetime.now(UTC).date().isoformat()
    while True:
        run += 1
        for agent, row in own.items():
            marks = [x if draw.random() < 0.9 else not x for x in row]
            rows = [{"task": f"t{j:02d}", "trial": 1, "outcome": int(x)} for j, x in enumerate(marks)]
            who = {"name": agent, "scaffold": "Loop", "model": f"Model {agent}"}
            yield {"agent": who, "submitted_at": today, "run": f"r{run}", "outcomes": rows}


class Crowd:
    """Threads that read and submit until they are told to end."""

    def __init__(self, service: Service, token: str) -> None:
        self.service, self.token = service, token
        self.ledger, self.delivered, self.over = Ledger(), Delivered(), threading.Event()
        asked = [(self.reads, i) for i in range(N_READERS)] + [(self.submits, i) for i in range(N_SUBMITTERS)]
        self.threads = [threading.Thread(target=self.kept, args=one) for one in asked]
        self.failures: list[str] = []
        self.tasks = [row[0] for row in service.rows("SELECT id FROM catalog_task ORDER BY id LIMIT 10")]
        self.agents = [row[0] for row in service.rows("SELECT id FROM catalog_agent ORDER BY id LIMIT 10")]

    def __enter__(self) -> "Crowd":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *told: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def kept(self, what: Callable[[int], None], who: int) -> None:
        """Nobody leaves unnoticed."""
        try:
            what(who)
        except Exception as error:
            self.failures.append(f"{what.__name__} {who}: {type(error).__name__}: {error}")

    def reads(self, who: int) -> None:
        draw = random.Random(who)
        while not self.over.wait(draw.expovariate(1 / READ_EVERY)):
            kind = draw.choice(list(PAGES))
            agent, other = draw.sample(self.agents, 2)
            named = {
                "agent": agent,
                "other": other,
                "task": draw.choice(self.tasks),
                "find": draw.choice("0123"),
            }
            self.read(kind, PAGES[kind].format(slug=SLUG, **named))

    def read(self, kind: str, path: str) -> None:
        begin = time.perf_counter()
        try:
            status, headers, text = self.service.get(path)
        except (OSError, http.client.HTTPException) as error:
            return self.ledger.note(kind, 0.0, BROKEN, str(error))
        seconds = time.perf_counter() - begin
        if status == 503 and headers.get("Retry-After"):
            return self.ledger.note(kind, seconds, UNAVAILABLE)
        return self.ledger.note(kind, seconds, OK if status == 200 else WRONG, f"{path}: {status} {text}")

    def submits(self, who: int) -> None:
        """By turns as JSON, as a file, checked only, sent twice, and with a fault."""
        draw = random.Random(who)
        client = Client(self.service.address, self.token, n_tries=1)
        for others, body in enumerate(bodies(who), start=1):
            if self.over.wait(draw.expovariate(1 / SUBMIT_EVERY)):
                return
            as_file = others % 3 == 0
            delivery = delivery_of(body, as_file=as_file)
            kind = "submit a file" if as_file else "submit"
            answer = self.until_answered(kind, lambda: client.submit(SLUG, delivery))  # noqa: B023
            with self.delivered.lock:
                self.delivered.bodies[answer["id"]] = body
            if others % 4 == 0:
                again = self.until_answered("submit again", lambda: client.submit(SLUG, delivery))  # noqa: B023
                assert (again["id"], again.get("replayed")) == (answer["id"], True)
            if others % 5 == 0:
                self.faulty(client, body)

    def faulty(self, client: Client, body: dict[str, Any]) -> None:
        wrong = body | {"outcomes": [row | {"outcome": 7} for row in body["outcomes"]]}
        refused = self.until_answered(
            "check a fault", lambda: client.check(SLUG, delivery_of(wrong)), refused=True
        )
        assert refused["n_faults"] == N_TASKS

    def until_answered(self, kind: str, ask: Callable[[], Any], *, refused: bool = False) -> Any:
        """Ask again, as a job does, until there is an answer; each try is noted."""
        while True:
            begin = time.perf_counter()
            try:
                answer = ask()
            except NotReachable as error:
                self.ledger.note(kind, 0.0, UNAVAILABLE if "503:" in str(error) else BROKEN)
                time.sleep(0.5)
                continue
            except Refused as error:
                is_meant = refused and error.problem.get("status") == 422
                self.ledger.note(
                    kind, time.perf_counter() - begin, OK if is_meant else WRONG, "\n".join(error.lines())
                )
                if not is_meant:
                    raise
                return error.problem
            except (OSError, urllib.error.URLError) as error:
                self.ledger.note(kind, 0.0, BROKEN, str(error))
                continue
            self.ledger.note(kind, time.perf_counter() - begin, OK)
            return answer


def delivery_of(body: dict[str, Any], *, as_file: bool = False) -> Payload:
    if not as_file:
        return Payload(json.dumps(body).encode())
    lines = [
        "task,trial,outcome",
        *(f"{row['task']},{row['trial']},{row['outcome']}" for row in body["outcomes"]),
    ]
    fields = {name: value for name, value in body.items() if name != "outcomes"}
    return Payload(("\n".join(lines) + "\n").encode(), "outcomes.csv", fields)
