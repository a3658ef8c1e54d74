"""The tables of what there is: benchmarks, their rules and tasks, agents, submissions and boards."""

from typing import Any

from django.contrib.admin import EmptyFieldListFilter, display
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from leaderboard.admin.actions import benchmarks, operations, outcomes
from leaderboard.admin.rows import Benchmarks, OfBenchmark, ReadOnlyAdmin
from leaderboard.boards.models import Board
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.catalog.rules import RULES
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import trust_now


class BenchmarkRows(ReadOnlyAdmin):
    benchmark = "pk"
    row_actions = (
        operations.UPLOAD,
        operations.UNDO,
        benchmarks.POLICY,
        benchmarks.ADD_TASKS,
        benchmarks.DESCRIBE,
        operations.PROPOSE,
        operations.RUN,
        operations.INVITE,
        operations.MEMBER,
        operations.WEBHOOK,
        *benchmarks.SWITCHES,
    )
    list_actions = (benchmarks.CREATE,)
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
    fields = ("benchmark", "number", *RULES, "created_at", "created_by")


class TaskRows(ReadOnlyAdmin):
    row_actions = (outcomes.RETIRE, outcomes.RESTORE)
    list_display = ("name", "benchmark", "category", "group", "retired_at")
    list_filter = (OfBenchmark, ("retired_at", EmptyFieldListFilter))
    search_fields = ("name",)
    fields = ("benchmark", "name", "category", "group", "position", "retired_at", "retired_reason")


class AgentRows(ReadOnlyAdmin):
    row_actions = (outcomes.RENAME, outcomes.MERGE, outcomes.APPROVE, outcomes.REPORT, outcomes.ERASE)
    list_display = ("name", "benchmark", "scaffold", "model", "version", "owner", "merged_into")
    list_filter = (OfBenchmark,)
    list_select_related = ("benchmark", "scaffold", "model", "owner", "merged_into")
    search_fields = ("name", "scaffold__name", "model__name")
    fields = (
        *("benchmark", "name", "scaffold", "model", "version", "organisation", "owner", "merged_into"),
        "known_as",
    )
    readonly_fields = ("known_as",)

    @display(description="Known before as")
    def known_as(self, row: Agent) -> str:
        return ", ".join(row.aliases.values_list("name", flat=True)) or "no other name"


class SubmissionRows(ReadOnlyAdmin):
    benchmark = "agent__benchmark"
    row_actions = (
        *(outcomes.ACCEPT, outcomes.REFUSE, outcomes.CONFIRM, outcomes.VERIFY, outcomes.UNVERIFY),
        outcomes.WITHDRAW,
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
            (f"{one.at:%Y-%m-%d %H:%M}", one.status, f", {one.by}" if one.by else "", one.reason)
            for one in changes
        )
        return format_html_join(mark_safe("<br>"), "{}: {}{} {}", lines)

    @display(description="Trust")
    def trust(self, row: Submission) -> str:
        return words.TRUST[trust_now(row)]

    @display(description="Verified")
    def verifications(self, row: Submission) -> SafeString | str:
        lines = (
            (
                f"{one.at:%Y-%m-%d %H:%M}",
                one.by or "command line",
                "" if one.verified else "no longer ",
                one.note,
            )
            for one in row.verifications.select_related("by").order_by("-id")
        )
        return format_html_join(mark_safe("<br>"), "{} by {}: {}verified ({})", lines) or "never"


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
