"""`manage.py move-out` and `move-in`: one benchmark with its history to another installation."""

import zipfile
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from leaderboard.accounts.models import ApiToken, User
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Agent, Benchmark, Membership, Scaffold
from leaderboard.operations.models import Alert, Assignment, Reselection, Webhook
from leaderboard.operations.moving.tables import BY_NUMBER, PATHS, rows_of
from leaderboard.operations.services import issue_token, recompute
from leaderboard.submissions.models import Submission
from tests.leaderboard.api.deliver import SUBMISSIONS
from tests.toys import AS_OF, csv_text, graded, in_subset, load_text, moved, only, recomputed

pytestmark = pytest.mark.django_db(transaction=True)


def lived():
    """A benchmark on which much has happened; returns its last board."""
    moved()
    recomputed()
    call_command("reselect", "toy", "--propose", "the rates moved")
    proposal = str(Reselection.objects.get().pk)
    call_command("reselect", "toy", "--approve", proposal, "--variant", "plain", "--reason", "they did")
    board = recomputed()
    tasks = in_subset(board)
    answer = submit("s00", only("1" * 20, tasks))
    assert answer.status_code == 201, answer.content
    call_command("rename", "toy", "a03", "An Agent", "--reason", "asked")
    call_command("merge", "toy", "a04", "a05", "--reason", "the same")
    call_command("retire", "toy", "t19", "--reason", "broken")
    call_command("webhooks", "toy", "--add", "https://hooks.example/x")
    call_command("assign", "toy", "--agent", "n", "--scaffold", "Loop", "--model", "M")
    recomputed()
    call_command("variance", "toy")
    call_command("drift", "toy")
    return recomputed()
