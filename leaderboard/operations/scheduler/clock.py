"""The scheduler: leads when it can, ticks, and ends in good order; any number may run, and one leads.

A lane is a thread that works off what is due, one run at a time. A pass goes once through its jobs. As only
one run of a lane is ever under way, whatever a pass finds marked as running was left behind, by this or an
earlier scheduler, and is due again.
"""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC

import psycopg
from apscheduler.schedulers.background import BackgroundScheduler
from django.conf import settings
from django.db import Error, close_old_connections
from django.utils import timezone

from leaderboard import postgres
from leaderboard.operations import runs
from leaderboard.operations.jobs import JOBS
from leaderboard.operations.models import JobRun, Lane
from leaderboard.operations.scheduler.children import Pulse, perform, perform_apart
from leaderboard.operations.scheduler.leadership import PAUSE, Leadership, leadership, pause

TICK = 5  # seconds
LOOK_EVERY = 1.0  # seconds between two looks at the connection and at the signals
PATIENCE = 10.0  # seconds for a step to be done, and again for it to be given up
STUCK = "no sign of life from the {lane} for {seconds} s: this process ends, for another to take over"
GAP = 0.2  # seconds in which calls to wake up run together

logger = logging.getLogger(__name__)


class LaneThread(threading.Thread):
    """Sleeps until it is woken, passes through its jobs, and sleeps again."""

    def __init__(self, lane: Lane, leader: Leadership) -> None:
        super().__init__(name=f"{lane} lane", daemon=True)
        self._lane, self._leader = lane, leader
        self._woken, self._ending, self._interrupted = (threading.Event() for _ in range(3))
        self._pulse: Pulse | None = None
        self._current: JobRun | None = None

    def wake(self) -> None:
        self._woken.set()

    def run(self) -> None:
        while not self._ending.is_set():
            self._woken.wait()
            self._ending.wait(GAP)
            self._woken.clear()
            self._pass_through()

    def stop(self, *, patience: float) -> None:
        """Begin nothing more; interrupt what is not done after so many seconds, and wait as many again."""
        self._ending.set()
        self._woken.set()
        self.join(patience)
        self._interrupted.set()
        self.join(patience)

    def abandon_current(self, *, why: str) -> None:
        """Say of the run under way that it is given up; should it still end, it stores nothing."""
        if self._current is not None:
            runs.abandon(self._current, why=why, as_of=timezone.now())

    def silent_for(self) -> float:
        """Seconds since the run under way last gave a sign of life in this process; 0 where there is none."""
        return time.monotonic() - self._pulse.at if self._pulse else 0.0

    def _pass_through(self) -> None:
        close_old_connections()
        try:
            if not self._ending.is_set() and self._leader.leads():
                runs.abandon_left(lane=self._lane, as_of=timezone.now())
                for run in self._begun():
                    self._current = run
                    try:
                        if self._lane == Lane.LONG:
                            perform_apart(run, self._interrupted.is_set)
                        else:
                            self._pulse = Pulse(run, self._interrupted.is_set)
                            perform(run, self._pulse)
                    finally:
                        self._current = self._pulse = None
        except Error as error:  # the next tick looks again
            logger.warning("%s: %s", self.name, str(error).strip())
        except Exception:
            logger.exception("%s", self.name)
        finally:
            close_old_connections()

    def _begun(self) -> Iterator[JobRun]:
        yield from self._queued()
        for job in JOBS.values():
            if job.lane == self._lane:
                try:
                    for due in job.wanted(timezone.now()):
                        if not self._goes_on():
                            break
                        claim, as_of = self._leader.claim, timezone.now()
                        if run := runs.begin(kind=job.kind, lane=job.lane, due=due, claim=claim, as_of=as_of):
                            yield run
                        yield from self._queued()
                except Error:
                    raise
                except Exception:  # one job may not keep the others waiting
                    logger.exception("whether %s is due cannot be told", job.kind)

    def _queued(self) -> Iterator[JobRun]:
        while self._goes_on():
            run = runs.begin_queued(lane=self._lane, claim=self._leader.claim, as_of=timezone.now())
            if run is None:
                return
            yield run

    def _goes_on(self) -> bool:
        return not self._ending.is_set() and self._leader.leads()


class Scheduler:
    """Runs until `end` is called, by a signal for instance."""

    def __init__(self) -> None:
        self._ended = False

    def end(self, *_: object) -> None:
        self._ended = True

    def is_ended(self) -> bool:
        return self._ended

    def run(self) -> None:
        while not self._ended:
            try:
                with leadership(self.is_ended) as leader:
                    if leader is not None:
                        lanes = [LaneThread(lane, leader) for lane in (Lane.PROMPT, Lane.LONG)]
                        ticking = _ticking(lanes)
                        try:
                            while not self._ended:
                                if leader.is_woken(within=LOOK_EVERY):
                                    _wake(lanes)
                                # A thread cannot be killed: where its step hangs, only this one's end ends it
                                if lanes[0].silent_for() > settings.STUCK_AFTER:
                                    sys.exit(STUCK.format(lane=lanes[0].name, seconds=settings.STUCK_AFTER))
                        finally:
                            ticking.shutdown()
                            self._stop(lanes)
            except psycopg.OperationalError as lost:
                logger.warning("the database does not answer: %s", str(lost).strip())
                try:
                    if not self._ended and postgres.revive():
                        logger.warning("the embedded PostgreSQL was gone, and is started again")
                except postgres.EmbeddedPostgresError as error:
                    sys.exit(f"{error}")
                pause(PAUSE, self.is_ended)

    def _stop(self, lanes: list[LaneThread]) -> None:
        """Let the prompt step be done, or give it up; the long one is given up at once."""
        prompt, long = lanes
        long.stop(patience=0.0)
        prompt.stop(patience=PATIENCE)
        long.join(PATIENCE)
        while prompt.is_alive() and not self._ended:  # leadership was lost; the next waits for it
            prompt.join(LOOK_EVERY)
        if prompt.is_alive():
            prompt.abandon_current(why="the scheduler ended")


def _ticking(lanes: list[LaneThread]) -> BackgroundScheduler:
    for lane in lanes:
        lane.start()
    _wake(lanes)
    ticking = BackgroundScheduler(timezone=UTC)
    options = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    ticking.add_job(_wake, "interval", [lanes], seconds=TICK, **options)
    ticking.start()
    return ticking


def _wake(lanes: list[LaneThread]) -> None:
    for lane in lanes:
        lane.wake()
