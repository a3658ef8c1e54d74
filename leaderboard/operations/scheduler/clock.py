"""The scheduler: leads when it can, ticks, and ends in good order."""

import logging
import sys
from datetime import UTC

import psycopg
from apscheduler.schedulers.background import BackgroundScheduler
from django.conf import settings

from leaderboard import postgres
from leaderboard.operations.models import Lane
from leaderboard.operations.scheduler.lanes import LaneThread
from leaderboard.operations.scheduler.leadership import PAUSE, leadership
from leaderboard.operations.scheduler.pausing import pause

TICK = 5  # seconds
LOOK_EVERY = 1.0  # seconds between two looks at the connection and at the signals
PATIENCE = 10.0  # seconds for a step to be done, and again for it to be given up
STUCK = "no sign of life from the {lane} for {seconds} s: this process ends, for another to take over"

logger = logging.getLogger(__name__)


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
                                _check_alive(lanes[0])
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


def _check_alive(lane: LaneThread) -> None:
    """A thread cannot be killed: where its step hangs, only the end of the process takes it away."""
    if lane.silent_for() > settings.STUCK_AFTER:
        sys.exit(STUCK.format(lane=lane.name, seconds=settings.STUCK_AFTER))
