"""What is done to a service that is at work: PostgreSQL stopped and killed, workers and scheduler killed."""

import os
import random
import signal
import threading
import time
from collections import Counter

from tests.leaderboard.service import Service
from tests.soak.memory import children

DOWN = (1.0, 5.0)  # seconds that PostgreSQL or the scheduler stays away
FAULTS = ("worker killed",) * 5 + ("scheduler killed",) * 2 + ("PostgreSQL stopped", "PostgreSQL killed")


class Trouble(threading.Thread):
    """Does one thing after the other, at random moments; the first ones are one of each."""

    def __init__(self, service: Service, web: int, scheduler: list[int], *, every: float) -> None:
        super().__init__(daemon=True)
        self.service, self.web, self.leader, self.every = service, web, scheduler, every
        self.over, self.done, self.draw = threading.Event(), Counter[str](), random.Random(5)
        self.each, self.failure = threading.Event(), ""  # `each`: one of each was done

    def run(self) -> None:
        order = list(dict.fromkeys(FAULTS))
        try:
            while not self.over.wait(self.draw.uniform(0.5, 1.5) * self.every):
                what = order.pop() if order else self.draw.choice(FAULTS)
                getattr(self, what.replace(" ", "_"))()
                self.done[what] += 1
                if not order:
                    self.each.set()
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
            self.each.set()

    def stop(self) -> Counter[str]:
        self.over.set()
        self.join()
        return self.done

    def worker_killed(self) -> None:
        if workers := children(self.web):
            os.kill(self.draw.choice(workers), signal.SIGKILL)

    def scheduler_killed(self) -> None:
        os.kill(self.leader[0], signal.SIGKILL)
        time.sleep(self.draw.uniform(*DOWN))
        self.leader[0] = self.service.scheduler().pid

    def PostgreSQL_stopped(self) -> None:
        with self.service.without_postgres():
            time.sleep(self.draw.uniform(*DOWN))
        self.service.start_postgres()

    def PostgreSQL_killed(self) -> None:
        self.service.end_postgres(signal.SIGKILL)
        time.sleep(self.draw.uniform(*DOWN))
        self.service.start_postgres()  # where the scheduler was killed too
