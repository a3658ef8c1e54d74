"""The tables on the site, and its addresses."""

from django.urls import path

from leaderboard.accounts.models import ApiToken, User
from leaderboard.admin import tables
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
    Alert: tables.AlertRows,
    RerunRequest: tables.RequestRows,
    Reselection: tables.ReselectionRows,
    JobRun: tables.JobRows,
    Webhook: tables.WebhookRows,
    Notification: tables.DeliveryRows,
    Dispute: tables.DisputeRows,
    Erasure: tables.ErasureRows,
    Membership: tables.MembershipRows,
    Invitation: tables.InvitationRows,
    ApiToken: tables.TokenRows,
    User: tables.UserRows,
}
for model, rows in TABLES.items():
    site.register(model, rows)

urlpatterns = [path("admin/", site.urls)]
