"""The site: who comes in, and what its pages may load."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from csp.decorators import csp_update
from django.conf import settings
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.defaults import bad_request
from unfold.sites import UnfoldAdminSite

from leaderboard.accounts.models import User
from leaderboard.admin.audit import N_SHOWN, recorded_changes
from leaderboard.admin.dashboard import Dashboard, summary
from leaderboard.catalog.queries import operated_benchmarks

# The side bar: by how often a thing is looked at
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


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
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


def operates_something(request: HttpRequest) -> bool:
    user = request.user
    return isinstance(user, User) and user.is_active and (user.is_staff or operated_benchmarks(user).exists())


def _user(request: HttpRequest) -> User:
    """Who is signed in, which `has_permission` has seen to."""
    assert isinstance(request.user, User)
    return request.user


def lacks_second_factor(request: HttpRequest) -> bool:
    return settings.REQUIRE_2FA and not is_mfa_enabled(request.user)


class Desk(UnfoldAdminSite):
    index_title = "What needs a decision"
    index_template = "backoffice/dashboard.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return operates_something(request) and not lacks_second_factor(request)

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def allowed(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if any("\0" in value for _, values in request.GET.lists() for value in values):
                return bad_request(request, BadRequest())  # the database would refuse it
            return inner(request, *args, **kwargs)

        guarded: Callable[..., Any] = csp_update(settings.ADMIN_CONTENT)(allowed)
        return guarded

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in by the one door; who is in already lacks the second factor, or the role."""
        then = request.GET.get("next", reverse("admin:index"))
        if not request.user.is_authenticated:
            return redirect_to_login(then, resolve_url(settings.LOGIN_URL))
        if not operates_something(request):
            raise PermissionDenied
        if lacks_second_factor(request):
            return redirect("mfa_activate_totp")
        return redirect("admin:index")

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return LogoutView.as_view(next_page="/")(request)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect("account_change_password")

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        user = _user(request)
        desk = Dashboard(operated_benchmarks(user), is_staff=user.is_staff, as_of=timezone.now())
        return super().index(request, {"desk": desk, "subtitle": summary(desk), **(extra_context or {})})

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Without Django's way from any row of any table to a page of it: no row has one."""
        return [one for one in super().get_urls() if getattr(one, "name", None) != "view_on_site"]

    def extra_urls(self) -> list[URLPattern]:
        return [path("audit/", self.admin_view(self.audit), name="audit")]

    def audit(self, request: HttpRequest) -> HttpResponse:
        user = _user(request)
        context = {
            **self.each_context(request),
            "title": "Audit",
            "changes": recorded_changes(operated_benchmarks(user), is_staff=user.is_staff),
            "most": N_SHOWN,
        }
        return TemplateResponse(request, "backoffice/audit.html", context)

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        groups = navigation(request)
        for group in groups:
            group["items"] = self._get_navigation_items(request, group["items"])
        return groups


site = Desk(name="admin")
