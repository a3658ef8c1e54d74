"""What is decided of alerts, requests, proposals, reports, jobs and deliveries."""

from collections.abc import Mapping
from typing import Any

from django import forms

from leaderboard.actions.base import ActionRequest, ActionResult, ReasonForm, action
from leaderboard.operations import corrections
from leaderboard.operations.acting import acting
from leaderboard.operations.jobs import JOBS, ask
from leaderboard.operations.models import JobStatus, NotificationStatus, RerunStatus, Reselection
from leaderboard.operations.webhooks import disable_webhook, send_again

FIGURES = ("pairs_correct_full", "pairs_correct", "skill", "rho_rest")  # of the subsets compared


def place_text(place: Mapping[str, Any]) -> str:
    if place["rank"] is None:
        return f"unranked, {place['how']}"
    return f"{place['rank']} ({place['rank_lower']} to {place['rank_upper']}), {place['how']}"


class VariantForm(ReasonForm):
    variant = forms.ChoiceField(label="Subset")

    def prepare(self) -> None:
        from leaderboard.operations.reselections import Comparison

        self.fields["variant"].choices = [  # type: ignore[attr-defined]
            (one.name, f"{one.label}: {one.k:,} tasks")
            for one in Comparison(self.row).variants
            if one.changes
        ]


class DecisionForm(ReasonForm):
    upheld = forms.ChoiceField(
        label="Decision", choices=[("yes", "The report is right"), ("no", "The report is not right")]
    )


def _is_proposed(reselection: Reselection) -> bool:
    return reselection.status == "proposed"


@action(
    "approve",
    "Approve",
    "Activates the ranking tasks you choose. Boards with the old ones stay readable.",
    form=VariantForm,
    is_open=_is_proposed,
    moves_board=True,
)
def approve(request: ActionRequest) -> ActionResult:
    from leaderboard.operations.reselections import approve

    subset = approve(reselection=request.row, variant=request.cleaned_data["variant"], **request.decision)
    return ActionResult(f"Ranking tasks, version {subset.number}, are active.")


@action("reject", "Reject", "The subset in use stays.", is_open=_is_proposed)
def reject(request: ActionRequest) -> ActionResult:
    from leaderboard.operations.reselections import reject

    reject(reselection=request.row, **request.decision)
    return ActionResult("Rejected: the subset in use stays.")


@action(
    "close",
    "Close the alert",
    "Close an alert that needs no action. It opens again if its monitor gets worse.",
    is_open=lambda alert: alert.closed_at is None,
)
def close_alert(request: ActionRequest) -> ActionResult:
    from leaderboard.operations.drifting import close_alert

    close_alert(alert=request.row, **request.decision)
    return ActionResult("Closed. It opens again once its monitor was quiet, or says more.")


@action(
    "close",
    "Close the request",
    "Asks for no more runs. Results that arrived stay.",
    is_open=lambda request: request.status == RerunStatus.OPEN,
    is_dangerous=True,
)
def close_request(request: ActionRequest) -> ActionResult:
    from leaderboard.operations.reruns import close_request

    close_request(request=request.row, **request.decision)
    return ActionResult("Closed; assignments go back to what they were.")


@action(
    "decide",
    "Decide",
    "Record whether the report is right. Withdraw, rename or erase separately.",
    form=DecisionForm,
    is_open=lambda dispute: dispute.decided_at is None,
)
def decide(request: ActionRequest) -> ActionResult:
    dispute = corrections.decide(
        dispute=request.row, upheld=request.cleaned_data["upheld"] == "yes", **request.decision
    )
    follows = " What follows from it is done on the agent's page." if dispute.upheld else ""
    return ActionResult(f"Decided.{follows}", row=dispute.agent if dispute.upheld else None)


@action(
    "again",
    "Run it again",
    "Queues the same job once more.",
    is_open=lambda run: run.kind in JOBS and run.status not in (JobStatus.QUEUED, JobStatus.RUNNING),
)
def again(request: ActionRequest) -> ActionResult:
    run = ask(
        kind=request.row.kind,
        benchmark=request.row.benchmark,
        about=request.row.about if request.row.kind == "reselect" else "",
        **request.decision,
    )
    return ActionResult(f"Queued: {run}.", row=run)


@action(
    "disable",
    "Disable",
    "Stops sending to it. Waiting deliveries are parked.",
    is_open=lambda webhook: webhook.disabled_at is None,
    is_dangerous=True,
)
def disable(request: ActionRequest) -> ActionResult:
    disable_webhook(webhook=request.row, **request.decision)
    return ActionResult("The webhook is disabled.")


@action(
    "send",
    "Send again",
    "Tries the delivery now.",
    is_open=lambda delivery: (
        delivery.status == NotificationStatus.PARKED
        and not (delivery.webhook and delivery.webhook.disabled_at)
    ),
)
def send(request: ActionRequest) -> ActionResult:
    with acting(by=request.by, reason=request.reason):
        send_again(delivery=request.row, as_of=request.as_of)
    return ActionResult("It is tried again within seconds, and for another day.")
