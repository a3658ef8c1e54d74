"""The tables on the site, and its addresses."""

from django.urls import path

from leaderboard.accounts.models import ApiToken, User
from leaderboard.admin import tables, watched
from leaderboard.admin.site import site
from leaderboard.boards.models import Board
from leaderboard.catalog.models import Agent, Benchmark, Invitation, Membership, Policy, Task
from leaderboard.operations.models import (
    Alert,
    Dispute,
    Erasure,
    JobRun,
    Notification,
    RerunRequest,
    Reselection,
    Webhook,
)
from leaderboard.studies.models import TaskSubset
from leaderboard.submissions.models import Submission

TABLES = {
    Benchmark: tables.BenchmarkRows,
    Policy: tables.PolicyRows,
    Task: tables.TaskRows,
    Agent: tables.AgentRows,
    Submission: tables.SubmissionRows,
    TaskSubset: tables.SubsetRows,
    Board: tables.BoardRows,
    Alert: watched.AlertRows,
    RerunRequest: watched.RequestRows,
    Reselection: watched.ReselectionRows,
    JobRun: watched.JobRows,
    Webhook: watched.WebhookRows,
    Notification: watched.DeliveryRows,
    Dispute: watched.DisputeRows,
    Erasure: watched.ErasureRows,
    Membership: watched.MembershipRows,
    Invitation: watched.InvitationRows,
    ApiToken: watched.TokenRows,
    User: watched.UserRows,
}
for model, rows in TABLES.items():
    site.register(model, rows)

urlpatterns = [path("admin/", site.urls)]
