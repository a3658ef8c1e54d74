"""What is decided of alerts, requests, proposals, reports, jobs and deliveries."""

from typing import Any

from django import forms

from leaderboard.admin.doing import Asked, Doing, Told, change_url
from leaderboard.admin.forms import ReasonForm
from leaderboard.operations.acting import acting
from leaderboard.operations.disputes import decide
from leaderboard.operations.jobs import JOBS, ask
from leaderboard.operations.models import DeliveryStatus, JobRun, JobStatus, RerunStatus, Reselection
from leaderboard.operations.webhooks import disable_webhook, send_again

LABELS = {"plain": "Plain rule", "hysteresis": "With hysteresis"}


class VariantForm(ReasonForm):
    variant = forms.ChoiceField(label="Subset")

    def prepare(self) -> None:
        from leaderboard.operations.comparisons import comparison_of

        self.fields["variant"].choices = [  # type: ignore[attr-defined]
            (one.name, f"{one.label}: {one.k:,} tasks")
            for one in comparison_of(self.row).variants
            if one.changes
        ]


class DecisionForm(ReasonForm):
    upheld = forms.ChoiceField(
        label="Decision", choices=[("yes", "The report is right"), ("no", "The report is not right")]
    )


def compared(reselection: Reselection) -> dict[str, Any]:
    """The proposal as a reader sees it."""
    from leaderboard.operations.comparisons import comparison_of
    from leaderboard.studies.answers import validated

    found = comparison_of(reselection)
    return {"comparison": found, "protocols": validated.PROTOCOLS, "figures": validated.FIGURES}


def _approve(asked: Asked) -> Told:
    from leaderboard.operations.reselections import approve

    subset = approve(
        reselection=asked.row,
        variant=asked.said["variant"],
        by=asked.by,
        reason=asked.reason,
        as_of=asked.as_of,
    )
    return Told(f"Version {subset.number} of the subset is active; the board follows by itself.")


def _reject(asked: Asked) -> Told:
    from leaderboard.operations.reselections import reject

    reject(reselection=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("Rejected: the subset in use stays.")


def _close_alert(asked: Asked) -> Told:
    from leaderboard.operations.drifting import close_alert

    close_alert(alert=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("Closed. It opens again once its monitor was quiet, or says more.")


def _close_request(asked: Asked) -> Told:
    from leaderboard.operations.reruns import close_request

    close_request(request=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("Closed; assignments go back to what they were.")


def _decide(asked: Asked) -> Told:
    dispute = decide(
        dispute=asked.row,
        upheld=asked.said["upheld"] == "yes",
        by=asked.by,
        reason=asked.reason,
        as_of=asked.as_of,
    )
    follows = " What follows from it is done on the agent's page." if dispute.upheld else ""
    return Told(f"Decided.{follows}", url=change_url(dispute.agent) if dispute.upheld else "")


def _again(asked: Asked) -> Told:
    run = ask(
        kind=asked.row.kind,
        benchmark=asked.row.benchmark,
        by=asked.by,
        reason=asked.reason,
        as_of=asked.as_of,
        about=asked.row.about if asked.row.kind == "reselect" else "",
    )
    return Told(f"Queued: {run}.", url=change_url(run))


def _disable(asked: Asked) -> Told:
    disable_webhook(webhook=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("It is told nothing more.")


def _send(asked: Asked) -> Told:
    with acting(by=asked.by, reason=asked.reason):
        send_again(delivery=asked.row, as_of=asked.as_of)
    return Told("It is tried again within seconds, and for another day.")


def _is_proposed(reselection: Reselection) -> bool:
    return reselection.status == "proposed"


def _may_run_again(run: JobRun) -> bool:
    return run.kind in JOBS and run.status not in (JobStatus.QUEUED, JobStatus.RUNNING)


APPROVE = Doing(
    "approve",
    "Approve",
    "Activates the subset you choose, in one step. Boards of the old one stay readable.",
    _approve,
    form=VariantForm,
    is_open=_is_proposed,
    beside="backoffice/comparison.html",
    context=compared,
)
REJECT = Doing(
    "reject",
    "Reject",
    "The subset in use stays.",
    _reject,
    is_open=_is_proposed,
    beside="backoffice/comparison.html",
    context=compared,
)
CLOSE_ALERT = Doing(
    "close",
    "Close the alert",
    "For an alert that you have looked at and want to leave so. It opens again if its monitor says more.",
    _close_alert,
    is_open=lambda alert: alert.closed_at is None,
)
CLOSE_REQUEST = Doing(
    "close",
    "Close the request",
    "Asks for no further runs. What has arrived stays.",
    _close_request,
    is_open=lambda request: request.status == RerunStatus.OPEN,
    is_dangerous=True,
)
DECIDE = Doing(
    "decide",
    "Decide",
    "Says whether the report is right. What follows (withdraw, rename, erase) is a step of its own.",
    _decide,
    form=DecisionForm,
    is_open=lambda dispute: dispute.decided_at is None,
)
AGAIN = Doing("again", "Run it again", "Queues the same job once more.", _again, is_open=_may_run_again)
DISABLE = Doing(
    "disable",
    "Disable",
    "Tells it nothing more, and parks what waits for it.",
    _disable,
    is_open=lambda webhook: webhook.disabled_at is None,
    is_dangerous=True,
)
SEND = Doing(
    "send",
    "Send again",
    "Tries the delivery at once.",
    _send,
    is_open=lambda delivery: (
        delivery.status == DeliveryStatus.PARKED and not (delivery.webhook and delivery.webhook.disabled_at)
    ),
)
