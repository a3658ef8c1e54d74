"""What belongs to whoever is signed in: tokens, agents, submissions, reports, invitations, mail."""

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.conf import settings
from django.contrib.auth import authenticate, login
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from leaderboard.accounts.models import Scope, User, has_confirmed_address
from leaderboard.accounts.services import MAX_LIFE
from leaderboard.catalog.models import Agent
from leaderboard.catalog.queries import operated_benchmarks, policy_in_force, visible_benchmarks
from leaderboard.errors import Faulty, Refusal
from leaderboard.operations.corrections import MAX_LENGTH, is_theirs, may_withdraw, report, withdraw_by
from leaderboard.operations.delivered import Followed, followed_by, submissions_of
from leaderboard.operations.people import (
    accept_invitation,
    invitation_of,
    make_token,
    revoke_token,
    wish_for_mail,
)
from leaderboard.operations.queries import NoSuchSubmission, has_been_shown
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import ever_counted, taking_back

N_SHOWN = 100  # submissions and agents
USUAL_LIFE = 90  # days
MAX_REASON = 2_000  # characters
SCOPES = {
    Scope.READ: "read: see what I can see",
    Scope.SUBMIT: "submit: also ask for assignments, submit and withdraw",
    Scope.OPERATE: "operate: also operate my benchmarks",
}
View = Callable[..., HttpResponse]


def personal(view: View) -> View:
    """For whoever is signed in, with a second factor where operators need one; never kept by a cache."""

    @never_cache
    @login_required
    def answer(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        user = request.user
        assert isinstance(user, User)
        lacks_factor = settings.REQUIRE_2FA and not is_mfa_enabled(user)
        if lacks_factor and (user.is_staff or operated_benchmarks(user).exists()):
            return redirect("mfa_activate_totp")
        return view(request, user, **kwargs)

    return answer


# ----------------------------------------------------------------------------------------- tokens and mail


class NewToken(forms.Form):
    name = forms.CharField(max_length=255, help_text="What the token is for, such as the name of a CI job.")
    scope = forms.ChoiceField(
        label="Scope", choices=list(SCOPES.items()), initial=Scope.SUBMIT, widget=forms.RadioSelect
    )
    benchmarks = forms.MultipleChoiceField(
        label="Benchmarks",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Choose none to allow all benchmarks.",
    )
    days = forms.IntegerField(
        label="Days until it expires", min_value=1, max_value=MAX_LIFE.days, initial=USUAL_LIFE
    )

    def __init__(self, user: User, data: Any = None) -> None:
        """Offer the benchmarks that are listed for all, and those of a member."""
        super().__init__(data)
        seen = visible_benchmarks(user)
        if not user.is_staff:
            seen = seen.filter(visibility="public") | seen.filter(memberships__user=user)
        named = list(seen.distinct().order_by("title", "slug").values_list("slug", "title"))
        n_of = Counter(title for _, title in named)
        choices = [(slug, title if n_of[title] == 1 else f"{title} ({slug})") for slug, title in named]
        self.fields["benchmarks"].choices = choices  # type: ignore[attr-defined]
        if not choices:
            del self.fields["benchmarks"]


@require_safe
@personal
def account(request: HttpRequest, user: User) -> HttpResponse:
    return _render_account(request, user, form=NewToken(user))


@require_POST
@personal
def token_made(request: HttpRequest, user: User) -> HttpResponse:
    form = NewToken(user, request.POST)
    if not form.is_valid():
        return _render_account(request, user, form=form, status=422)
    values = form.cleaned_data | {"scope": Scope(form.cleaned_data["scope"])}
    try:
        token, secret = make_token(user=user, as_of=timezone.now(), **{"benchmarks": [], **values})
    except Refusal as refusal:
        return _render_account(request, user, form=form, refusal=refusal, status=409)
    return _render_account(request, user, form=NewToken(user), made=token, secret=secret)


@require_POST
@personal
def token_revoked(request: HttpRequest, user: User, public_id: str) -> HttpResponse:
    token = user.tokens.filter(public_id=public_id).first()
    if token is None:
        raise Http404
    try:
        revoke_token(token=token, by=user, reason="revoked by its owner", as_of=timezone.now())
    except Refusal as refusal:
        return _render_account(request, user, form=NewToken(user), refusal=refusal, status=409)
    return redirect("pages:account")


@require_POST
@personal
def mail(request: HttpRequest, user: User) -> HttpResponse:
    wish_for_mail(user=user, wanted=request.POST.get("told") == "yes")
    return redirect("pages:account")


def _render_account(
    request: HttpRequest, user: User, *, form: NewToken, status: int = 200, **more: Any
) -> HttpResponse:
    now, tokens = timezone.now(), []
    for token in user.tokens.order_by("-created_at", "-id"):
        is_expired = token.expires_at <= now
        until = f"{'expired' if is_expired else 'expires'} on {token.expires_at:%Y-%m-%d}"
        if token.revoked_at:
            until = f"revoked on {token.revoked_at:%Y-%m-%d}"
        tokens.append((token, until, token.revoked_at is None and not is_expired))
    agents = user.agents.select_related("benchmark", "scaffold", "model")
    agents = agents.annotate(n_submissions=Count("submissions")).order_by("benchmark__slug", "name")
    context = {
        "form": form,
        "tokens": tokens,
        "n_live": sum(is_live for *_, is_live in tokens),
        "n_agents": user.agents.count(),
        "n_submissions": submissions_of(user).count(),
        "agents": agents[:N_SHOWN],
        "submissions": submissions_of(user)[:N_SHOWN],
        "operates": user.is_staff or operated_benchmarks(user).exists(),
        "memberships": user.memberships.select_related("benchmark").order_by("benchmark__slug"),
        "most": N_SHOWN,
    }
    return render(request, "pages/account.html", context | more, status=status)


# ------------------------------------------------------------------------------------------- a submission


class TakeBack(forms.Form):
    reason = forms.CharField(
        label="Reason",
        max_length=MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The reason is stored with the submission.",
    )
    sure = forms.BooleanField(label="Withdraw these results. This cannot be undone here.")


@require_safe
@personal
def submission(request: HttpRequest, user: User, uuid: UUID) -> HttpResponse:
    return _render_submission(request, user, _submission_of(user, uuid))


@require_POST
@personal
def withdraw_submission(request: HttpRequest, user: User, uuid: UUID) -> HttpResponse:
    """Withdraw it; a refusal stands above the page as it is."""
    own, form = _submission_of(user, uuid), TakeBack(request.POST)
    if not form.is_valid():
        return _render_submission(request, user, own, form=form, status=422)
    try:
        withdraw_by(uuid=uuid, user=user, reason=form.cleaned_data["reason"], as_of=timezone.now())
    except Refusal as refusal:
        return _render_submission(request, user, own, refusal=refusal, status=409)
    return redirect("pages:submission", uuid)


def _submission_of(user: User, uuid: UUID) -> Submission:
    try:
        return followed_by(user, uuid)
    except NoSuchSubmission as missing:
        raise Http404(str(missing)) from missing


def _render_submission(
    request: HttpRequest, user: User, own: Submission, *, status: int = 200, **more: Any
) -> HttpResponse:
    page = Followed(own, token=None, as_of=timezone.now())
    context = {"page": page, "submission": own, "form": None}
    if may_withdraw(own, user):
        by_owner = is_theirs(own, user) and bool(taking_back(policy_in_force(own.agent.benchmark)))
        context |= {"form": TakeBack(), "by_owner": by_owner, "was_shown": has_been_shown(own.agent)}
    return render(request, "pages/submission.html", context | more, status=status)


# --------------------------------------------------------------------------------- reporting an entry


class Report(forms.Form):
    text = forms.CharField(
        label="What is wrong?",
        max_length=MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="Name the evidence: which results, which rule, which run.",
    )
    board = forms.IntegerField(
        label="Board number",
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="If the report is about one board.",
    )
    contact = forms.EmailField(
        label="E-mail for questions", required=False, help_text="Empty: the address of your account."
    )


@require_http_methods(["GET", "HEAD", "POST"])
@personal
def report_agent(request: HttpRequest, user: User, slug: str, pk: int) -> HttpResponse:
    """GET shows the form; POST stores the report, which changes nothing until an operator decides.

    The agent is one of which something counted, on a benchmark that this person sees.
    """
    counted = Exists(ever_counted().filter(agent=OuterRef("pk")))
    agents = Agent.objects.filter(counted, benchmark__in=visible_benchmarks(user).values("pk"))
    agent = agents.select_related("benchmark").filter(benchmark__slug=slug, pk=pk).first()
    if agent is None:
        raise Http404("There is no such agent.")
    form = Report(request.POST or None, initial={"board": request.GET.get("board", "")[:10]})
    context = {"agent": agent, "benchmark": agent.benchmark, "form": form}
    if request.method != "POST":
        return render(request, "pages/report.html", context)
    status = 422
    if form.is_valid():
        try:
            context["stored"] = report(agent=agent, by=user, as_of=timezone.now(), **form.cleaned_data)
            status = 201
        except Faulty as faulty:
            for fault in faulty.faults:
                form.add_error(fault.field, f"This {fault.rule}.")
        except Refusal as refusal:
            context["refusal"], status = refusal, 409
    return render(request, "pages/report.html", context, status=status)


# ---------------------------------------------------------------------------------------- an invitation


class NewAccount(forms.Form):
    name = forms.CharField(label="Your name", max_length=255)
    password = forms.CharField(
        label="Password", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    try:
        offer = invitation_of(secret, as_of=timezone.now())
    except Refusal as refusal:
        return render(request, "pages/invitation.html", {"refusal": refusal}, status=404)
    user = request.user if isinstance(request.user, User) else None
    known = User.objects.filter(email=offer.email).first()
    must_sign_in = user is None and known is not None and known.has_usable_password()
    form = None if user or must_sign_in else NewAccount(request.POST or None)
    context = {"invitation": offer, "form": form, "must_sign_in": must_sign_in}
    if request.method == "POST" and not must_sign_in and (form is None or form.is_valid()):
        try:
            values = form.cleaned_data if form else {}
            guest = accept_invitation(secret=secret, user=user, as_of=timezone.now(), **values)
        except Refusal as refusal:
            return render(request, "pages/invitation.html", context | {"refusal": refusal}, status=409)
        if not has_confirmed_address(guest):
            return render(request, "pages/invitation.html", context | {"form": None, "is_opened": True})
        if user is None:
            known = authenticate(request, email=offer.email, password=values["password"])
            if known is not None:
                login(request, known)
        if not visible_benchmarks(None).filter(pk=offer.benchmark_id).exists():
            return redirect("pages:account")  # a private one has no page
        return redirect("pages:board", offer.benchmark.slug)
    return render(request, "pages/invitation.html", context)
