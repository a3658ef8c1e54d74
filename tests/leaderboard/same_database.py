"""Settings of a process that a test starts on its own database."""

import os

from leaderboard.settings import *  # noqa: F403
from leaderboard.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["BST_DB"]
