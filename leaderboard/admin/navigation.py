"""The side bar: by how often a thing is looked at."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

GROUPS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Today": (
        ("Dashboard", "index", "dashboard"),
        ("Alerts", "operations_alert_changelist", "notifications"),
        ("Rerun requests", "operations_rerunrequest_changelist", "replay"),
        ("Reselections", "operations_reselection_changelist", "swap_horiz"),
        ("Submissions", "submissions_submission_changelist", "upload_file"),
        ("Reports", "operations_dispute_changelist", "flag"),
    ),
    "Benchmarks": (
        ("Benchmarks", "catalog_benchmark_changelist", "leaderboard"),
        ("Policies", "catalog_policy_changelist", "rule"),
        ("Tasks", "catalog_task_changelist", "checklist"),
        ("Agents", "catalog_agent_changelist", "smart_toy"),
        ("Subsets", "studies_tasksubset_changelist", "filter_alt"),
        ("Boards", "boards_board_changelist", "format_list_numbered"),
    ),
    "People": (
        ("Members", "catalog_membership_changelist", "group"),
        ("Invitations", "catalog_invitation_changelist", "mail"),
        ("Tokens", "accounts_apitoken_changelist", "key"),
        ("Accounts", "accounts_user_changelist", "person"),
    ),
    "Machinery": (
        ("Job runs", "operations_jobrun_changelist", "schedule"),
        ("Webhooks", "operations_webhook_changelist", "webhook"),
        ("Deliveries", "operations_notification_changelist", "outbox"),
        ("Erasures", "operations_erasure_changelist", "ink_eraser"),
        ("Audit", "audit", "history"),
    ),
}
STAFF_ONLY = {"accounts_user_changelist"}


def navigation(site: Any, request: HttpRequest) -> list[dict[str, Any]]:
    """The groups with their links; each table checks permission by itself as well."""
    is_staff = bool(request.user.is_staff)
    return [
        {
            "title": title,
            "separator": number > 0,
            "items": [
                {"title": name, "link": reverse(f"admin:{address}"), "icon": icon}
                for name, address, icon in links
                if is_staff or address not in STAFF_ONLY
            ],
        }
        for number, (title, links) in enumerate(GROUPS.items())
    ]
