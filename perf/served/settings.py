"""The service's own, but for one address more."""

from leaderboard.settings import *  # noqa: F403 - they are one module

ROOT_URLCONF = "perf.served.urls"
