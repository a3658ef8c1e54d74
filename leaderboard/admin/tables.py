"""The tables of the admin: what there is, what happens, and people."""

from typing import Any

from django.contrib.admin import EmptyFieldListFilter, display
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from leaderboard.accounts.models import ApiToken, User
from leaderboard.actions import benchmarks, names, operations, outcomes, people, watching
from leaderboard.admin.rows import Benchmarks, OfBenchmark, ReadOnlyAdmin
from leaderboard.boards.models import Board
from leaderboard.catalog.models import Agent, Benchmark, Membership, Policy
from leaderboard.catalog.rules import ADVANCED
from leaderboard.operations.models import Alert, Notification, RerunRequest
from leaderboard.operations.queries import accounts_behind
from leaderboard.studies.answers import words
from leaderboard.submissions.models import AccountTrust, Submission
from leaderboard.submissions.queries import trust_now


def _vouched(rows: QuerySet[Any], state: str, why: str) -> SafeString | str:
    """In a line each, the latest first: when and by whom it was vouched for or no longer, and why."""
    lines = (
        (
            *(f"{one.at:%Y-%m-%d %H:%M}", one.by or "command line"),
            *("" if getattr(one, state) else "no longer ", state, getattr(one, why)),
        )
        for one in rows.select_related("by").order_by("-id")
    )
    return format_html_join(mark_safe("<br>"), "{} by {}: {}{} ({})", lines) or "never"


class BenchmarkRows(ReadOnlyAdmin):
    benchmark = "pk"
    row_actions = (
        operations.upload,
        operations.undo,
        benchmarks.policy,
        benchmarks.add_tasks,
        benchmarks.describe,
        operations.propose,
        operations.run,
        operations.invite,
        operations.member,
        operations.webhook,
        *benchmarks.SWITCHES,
    )
    list_actions = (benchmarks.create,)
    list_display = ("slug", "title", "visibility", "state", "n_tasks", "n_agents", "board")
    search_fields = ("slug", "title")
    ordering = ("slug",)
    fields = (
        *("slug", "title", "board", "description", "url", "licence", "citation", "unit", "visibility"),
        *("frozen_at", "frozen_reason", "hidden_at", "hidden_reason"),
        *("full_runs_only_at", "full_runs_only_reason", "data_version", "created_at"),
    )
    readonly_fields = ("board",)

    def of_benchmarks(self, rows: QuerySet[Any], operated: Benchmarks) -> QuerySet[Any]:
        return rows.filter(pk__in=operated.values("pk"))

    def get_queryset(self, request: Any) -> QuerySet[Any]:
        counts = {
            "n_tasks": Count("tasks", filter=Q(tasks__retired_at=None), distinct=True),
            "n_agents": Count("agents", distinct=True),
        }
        return super().get_queryset(request).annotate(**counts)

    @display(description="Tasks")
    def n_tasks(self, row: Any) -> int:
        return int(row.n_tasks)

    @display(description="Agents")
    def n_agents(self, row: Any) -> int:
        return int(row.n_agents)

    @display(description="State")
    def state(self, row: Benchmark) -> str:
        since_by_name = {
            "frozen": row.frozen_at,
            "hidden": row.hidden_at,
            "full runs only": row.full_runs_only_at,
        }
        return ", ".join(name for name, since in since_by_name.items() if since) or "open"

    @display(description="Its board")
    def board(self, row: Benchmark) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("pages:board", args=[row.slug]), f"/b/{row.slug}")


class PolicyRows(ReadOnlyAdmin):
    list_display = ("benchmark", "number", "created_at", "created_by")
    list_filter = (OfBenchmark,)
    ordering = ("benchmark__slug", "-number")
    fieldsets = (
        (
            None,
            {"fields": ("benchmark", "number", *Policy.BASIC, "resolved_from", "created_at", "created_by")},
        ),
        ("Advanced", {"classes": ("collapse",), "fields": ADVANCED}),
    )


class TaskRows(ReadOnlyAdmin):
    row_actions = (outcomes.retire, outcomes.restore)
    list_display = ("name", "benchmark", "category", "group", "retired_at")
    list_filter = (OfBenchmark, ("retired_at", EmptyFieldListFilter))
    search_fields = ("name",)
    fields = ("benchmark", "name", "category", "group", "position", "retired_at", "retired_reason")


class AgentRows(ReadOnlyAdmin):
    row_actions = (names.rename, names.merge, outcomes.approve, outcomes.report, outcomes.erase)
    list_display = ("name", "benchmark", "scaffold", "model", "version", "owner", "merged_into")
    list_filter = (OfBenchmark,)
    list_select_related = ("benchmark", "scaffold", "model", "owner", "merged_into")
    search_fields = ("name", "scaffold__name", "model__name")
    fields = (
        *("benchmark", "name", "scaffold", "model", "version", "organisation", "weights", "owner"),
        "merged_into",
        "known_as",
    )
    readonly_fields = ("known_as",)

    @display(description="Known before as")
    def known_as(self, row: Agent) -> str:
        return ", ".join(row.aliases.values_list("name", flat=True)) or "no other name"


class SubmissionRows(ReadOnlyAdmin):
    benchmark = "agent__benchmark"
    row_actions = (
        *(outcomes.accept, outcomes.refuse, outcomes.confirm, outcomes.verify, outcomes.unverify),
        outcomes.withdraw,
    )
    list_display = ("uuid", "agent", "of", "status", "received_at", "n_outcomes", "n_invalid", "loaded")
    list_filter = (OfBenchmark, "status", "loaded")
    list_select_related = ("agent__benchmark",)
    search_fields = ("uuid", "agent__name")
    ordering = ("-id",)
    fields = (
        *("uuid", "agent", "of", "status", "history", "submitted_by", "submitted_at", "received_at"),
        *("backdated", "n_outcomes", "n_invalid", "replaces", "links", "loaded", "n_trials"),
        *("trust", "verifications"),
    )
    readonly_fields = ("of", "history", "trust", "verifications")

    @display(description="Benchmark")
    def of(self, row: Submission) -> str:
        return row.agent.benchmark.slug

    @display(description="What became of it")
    def history(self, row: Submission) -> SafeString:
        changes = row.status_changes.select_related("by").order_by("id")
        lines = (
            (
                f"{one.at:%Y-%m-%d %H:%M}",
                one.status,
                f" (by {one.by})" if one.by else "",
                one.reason and f": {one.reason}",
            )
            for one in changes
        )
        return format_html_join(mark_safe("<br>"), "{}: {}{}{}", lines)

    @display(description="Trust")
    def trust(self, row: Submission) -> str:
        return words.TRUST[trust_now(row)]

    @display(description="Verified")
    def verifications(self, row: Submission) -> SafeString | str:
        return _vouched(row.verifications.all(), "verified", "note")


class SubsetRows(ReadOnlyAdmin):
    list_display = ("benchmark", "number", "n_tasks", "lo", "hi", "strategy", "fixed_at", "provisional")
    list_filter = (OfBenchmark,)
    ordering = ("benchmark__slug", "-number")
    fields = ("benchmark", "number", "lo", "hi", "strategy", "reason", "n_complete", "n_tasks", "fixed_at")


class BoardRows(ReadOnlyAdmin):
    list_display = ("benchmark", "number", "published_at", "phase", "n_tasks", "n_complete", "page")
    list_filter = (OfBenchmark, "phase")
    list_select_related = ("benchmark",)
    ordering = ("-published_at",)
    fields = (
        *("benchmark", "number", "page", "published_at", "phase", "target", "n_tasks", "n_complete"),
        *("data_version", "policy", "subset", "estimator_version", "digest"),
    )
    readonly_fields = ("page",)

    @display(description="Its page")
    def page(self, row: Board) -> SafeString:
        address = reverse("pages:version", args=[row.benchmark.slug, row.number])
        return format_html('<a href="{}">{}</a>', address, address)


class AlertRows(ReadOnlyAdmin):
    row_actions = (watching.close_alert,)
    list_display = ("monitor", "benchmark", "level", "opened_at", "closed_at", "request")
    list_filter = (OfBenchmark, "level", "monitor")
    list_select_related = ("benchmark", "request__benchmark")
    ordering = ("closed_at", "-opened_at")
    fields = (
        *("benchmark", "subset", "monitor", "level", "evidence", "accounts", "request", "opened_at"),
        *("closed_at", "closed_by", "closed_reason"),
    )
    readonly_fields = ("accounts",)

    @display(description="Accounts behind it")
    def accounts(self, row: Alert) -> str:
        return accounts_behind(row.subset, row.evidence) or "none"


class RequestRows(ReadOnlyAdmin):
    row_actions = (watching.close_request,)
    list_display = ("id", "benchmark", "kind", "status", "opened_at", "deadline", "arrived")
    list_filter = (OfBenchmark, "kind", "status")
    list_select_related = ("benchmark",)
    ordering = ("-opened_at",)
    fields = (
        *("benchmark", "kind", "status", "reason", "subset", "n_tasks", "cost_usd", "opened_at", "deadline"),
        *("asked", "closed_at", "closed_by", "closed_reason"),
    )
    readonly_fields = ("asked",)

    @display(description="Arrived")
    def arrived(self, row: RerunRequest) -> str:
        dates = list(row.agents.values_list("arrived_at", flat=True))
        return f"{len(dates) - dates.count(None)} of {len(dates)}"

    @display(description="Agents asked")
    def asked(self, row: RerunRequest) -> SafeString:
        lines = (
            (
                one.agent.name,
                f"lacked {one.n_lacking:,} tasks",
                f"arrived {one.arrived_at:%Y-%m-%d}" if one.arrived_at else "not arrived",
                one.why,
            )
            for one in row.agents.select_related("agent").order_by("agent__name")
        )
        return format_html_join(mark_safe("<br>"), "{}: {}, {} ({})", lines)


class ReselectionRows(ReadOnlyAdmin):
    row_actions = (watching.approve, watching.reject)
    change_form_outer_before_template = "backoffice/proposal.html"
    row_template = "backoffice/comparison.html"
    list_display = ("id", "benchmark", "status", "reason", "proposed_at", "decided_at", "variant")
    list_filter = (OfBenchmark, "status")
    list_select_related = ("benchmark",)
    ordering = ("-id",)
    fields = (
        *("benchmark", "status", "reason", "alert", "previous", "proposed_by", "proposed_at"),
        *("decided_by", "decided_at", "decided_reason", "variant", "subset"),
    )

    def row_context(self, row: Any) -> dict[str, Any]:
        from leaderboard.operations.reselections import Comparison
        from leaderboard.studies.answers import validated

        comparison = Comparison(row)
        return {"comparison": comparison, "protocols": validated.PROTOCOLS, "figures": validated.FIGURES}


class JobRows(ReadOnlyAdmin):
    row_actions = (watching.again,)
    list_display = ("kind", "benchmark", "status", "created_at", "ended_at", "progress", "told")
    list_filter = (OfBenchmark, "status", "kind")
    list_select_related = ("benchmark",)
    ordering = ("-id",)
    fields = (
        *("kind", "lane", "benchmark", "about", "status", "progress", "requested_by", "reason"),
        *("created_at", "started_at", "heartbeat_at", "ended_at", "told", "error"),
    )
    readonly_fields = ("progress",)

    @display(description="Progress")
    def progress(self, row: Any) -> str:
        return f"{row.n_done:,} of {row.n_total:,}" if row.n_total else "not counted"


class WebhookRows(ReadOnlyAdmin):
    row_actions = (watching.disable,)
    list_display = ("url", "benchmark", "events", "created_at", "disabled_at")
    list_filter = (OfBenchmark,)
    list_select_related = ("benchmark",)
    fields = (*("benchmark", "url", "events", "created_by", "created_at", "disabled_at", "disabled_reason"),)


class DeliveryRows(ReadOnlyAdmin):
    benchmark = "event__benchmark"
    row_actions = (watching.send,)
    list_display = ("id", "event", "webhook", "email", "status", "n_attempts", "next_at", "last")
    list_filter = (OfBenchmark, "status", "event__kind")
    list_select_related = ("event__benchmark", "webhook")
    ordering = ("-id",)
    fields = (
        *("event", "webhook", "email", "status", "n_attempts", "first_at", "next_at", "ended_at"),
        "attempts",
    )
    readonly_fields = ("attempts",)

    @display(description="Last answer")
    def last(self, row: Notification) -> str:
        last = row.attempts.order_by("-id").first()
        return f"{last.status or last.error}" if last else "not tried yet"

    @display(description="Tries")
    def attempts(self, row: Notification) -> SafeString:
        lines = (
            (f"{one.at:%Y-%m-%d %H:%M:%S}", one.status or "no answer", f"{one.seconds:.2f}", one.error)
            for one in row.attempts.order_by("id")
        )
        return format_html_join(mark_safe("<br>"), "{}: {} after {} s {}", lines)


class DisputeRows(ReadOnlyAdmin):
    row_actions = (watching.decide,)
    list_display = ("agent", "benchmark", "created_at", "by", "decided_at", "upheld")
    list_filter = (OfBenchmark, "upheld")
    list_select_related = ("agent", "benchmark", "by")
    ordering = ("decided_at", "-id")
    fields = (
        *("benchmark", "agent", "board_number", "text", "by", "contact", "created_at"),
        *("upheld", "decided_by", "decided_at", "decided_reason"),
    )


class ErasureRows(ReadOnlyAdmin):
    list_display = ("tombstone", "what", "benchmark", "at", "by", "reason")
    list_filter = (OfBenchmark,)
    fields = ("benchmark", "what", "tombstone", "reason", "at", "by")
    ordering = ("-id",)


class MembershipRows(ReadOnlyAdmin):
    row_actions = (people.set_role, people.trust, people.untrust, people.remove)
    list_display = ("user", "benchmark", "role", "trusted")
    list_filter = (OfBenchmark, "role")
    list_select_related = ("user", "benchmark")
    search_fields = ("user__email", "user__name")
    fields = ("user", "benchmark", "role", "trusted", "trust")
    readonly_fields = ("trusted", "trust")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        same = {"benchmark": OuterRef("benchmark"), "account": OuterRef("user")}
        latest = AccountTrust.objects.filter(**same).order_by("-id").values("trusted")[:1]
        return super().get_queryset(request).annotate(is_trusted=Subquery(latest))

    @display(description="Trusted", boolean=True)
    def trusted(self, row: Any) -> bool:
        return bool(row.is_trusted)

    @display(description="Trust")
    def trust(self, row: Membership) -> SafeString | str:
        events = AccountTrust.objects.filter(benchmark=row.benchmark, account=row.user)
        return _vouched(events, "trusted", "reason")


class InvitationRows(ReadOnlyAdmin):
    row_actions = (people.revoke_invitation,)
    list_display = (
        *("email", "benchmark", "role", "trusted", "created_at", "expires_at", "accepted_at", "revoked_at"),
    )
    list_filter = (OfBenchmark, "role")
    ordering = ("-id",)
    fields = (
        *("email", "benchmark", "role", "trusted", "created_by", "created_at", "expires_at"),
        *("accepted_by", "accepted_at", "revoked_at"),
    )


class TokenRows(ReadOnlyAdmin):
    """An operator sees the tokens that are for nothing but benchmarks of theirs."""

    benchmark = "benchmarks"
    row_actions = (people.revoke_token,)
    list_display = ("name", "user", "public_id", "scopes", "benchmarks", "expires_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("name", "user__email", "public_id")
    ordering = ("-id",)
    fields = (
        *("name", "user", "public_id", "scopes", "benchmarks", "created_at", "expires_at"),
        *("revoked_at", "last_used_at"),
    )

    def of_benchmarks(self, rows: QuerySet[ApiToken], operated: Benchmarks) -> QuerySet[ApiToken]:
        slugs = list(operated.values_list("slug", flat=True))
        return rows.filter(benchmarks__contained_by=slugs).exclude(benchmarks=[])


class UserRows(ReadOnlyAdmin):
    benchmark = ""
    row_actions = (people.erase_account,)
    list_display = ("email", "name", "is_active", "is_staff", "joined_at", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email", "name")
    ordering = ("email",)
    fields = ("email", "name", "is_active", "is_staff", "joined_at", "last_login", "roles")
    readonly_fields = ("roles",)

    @display(description="Roles")
    def roles(self, row: User) -> str:
        memberships = row.memberships.select_related("benchmark").order_by("benchmark__slug")
        return ", ".join(f"{one.role} of {one.benchmark}" for one in memberships) or "none"
