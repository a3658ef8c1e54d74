"""What belongs to whoever is signed in: tokens, agents, submissions, and wishes for mail."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from leaderboard.accounts.models import ApiToken, Scope, User
from leaderboard.accounts.services import MAX_LIFE
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.catalog.queries import operated_benchmarks, visible_benchmarks
from leaderboard.errors import Refusal
from leaderboard.operations.following import submissions_of
from leaderboard.operations.people import make_token, revoke_token, wish_for_mail

N_SHOWN = 100  # submissions and agents
USUAL_LIFE = 90  # days
SCOPES = {
    Scope.READ: "read what I may see",
    Scope.SUBMIT: "read, ask for assignments, deliver and withdraw",
    Scope.OPERATE: "all of that, and operate the benchmarks that I operate",
}
View = Callable[..., HttpResponse]


class NewToken(forms.Form):
    name = forms.CharField(max_length=255, help_text="What it is for, such as the CI job that has it.")
    scope = forms.ChoiceField(
        label="It may", choices=list(SCOPES.items()), initial=Scope.SUBMIT, widget=forms.RadioSelect
    )
    benchmarks = forms.MultipleChoiceField(
        label="On",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: on all benchmarks.",
    )
    days = forms.IntegerField(
        label="Days until it expires", min_value=1, max_value=MAX_LIFE.days, initial=USUAL_LIFE
    )

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        choices = [(one.slug, one.title) for one in _reachable_benchmarks(user)]
        self.fields["benchmarks"].choices = choices  # type: ignore[attr-defined]
        if not choices:
            del self.fields["benchmarks"]


def _reachable_benchmarks(user: User) -> QuerySet[Benchmark]:
    """The benchmarks that are listed for all, and those of a member."""
    benchmarks = visible_benchmarks(user)
    listed = benchmarks.filter(visibility="public") | benchmarks.filter(memberships__user=user)
    return (benchmarks if user.is_staff else listed).distinct().order_by("title", "slug")


def personal(view: View) -> View:
    """For whoever is signed in, with a second factor where operators need one; never kept by a cache."""

    @never_cache
    @login_required
    def answer(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        assert isinstance(request.user, User)
        if _lacks_second_factor(request.user):
            return redirect("mfa_activate_totp")
        return view(request, request.user, **kwargs)

    return answer


def _lacks_second_factor(user: User) -> bool:
    if not settings.REQUIRE_2FA or is_mfa_enabled(user):
        return False
    return user.is_staff or operated_benchmarks(user).exists()


@require_safe
@personal
def account(request: HttpRequest, user: User) -> HttpResponse:
    return _render_account(request, user, form=NewToken(user))


@require_POST
@personal
def token_made(request: HttpRequest, user: User) -> HttpResponse:
    """Make a token, and show its secret this once."""
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
    now = timezone.now()
    tokens = [_Token(token, now) for token in user.tokens.order_by("-created_at", "-id")]
    context = {
        "form": form,
        "tokens": tokens,
        "n_live": sum(token.is_live for token in tokens),
        "n_agents": user.agents.count(),
        "n_submissions": submissions_of(user).count(),
        "agents": _agents(user)[:N_SHOWN],
        "submissions": submissions_of(user)[:N_SHOWN],
        "memberships": user.memberships.select_related("benchmark").order_by("benchmark__slug"),
        "most": N_SHOWN,
    }
    return render(request, "pages/account.html", context | more, status=status)


def _agents(user: User) -> QuerySet[Agent]:
    theirs = user.agents.select_related("benchmark", "scaffold", "model")
    return theirs.annotate(n_submissions=Count("submissions")).order_by("benchmark__slug", "name")


class _Token:
    """A token as its owner sees it."""

    def __init__(self, token: ApiToken, now: datetime) -> None:
        self.token, self.now = token, now

    @property
    def state(self) -> str:
        token = self.token
        if token.revoked_at:
            return f"revoked on {token.revoked_at:%Y-%m-%d}"
        verb = "expired" if token.expires_at <= self.now else "expires"
        return f"{verb} on {token.expires_at:%Y-%m-%d}"

    @property
    def is_live(self) -> bool:
        return self.token.revoked_at is None and self.token.expires_at > self.now

    @property
    def reach(self) -> str:
        return ", ".join(self.token.benchmarks) or "all benchmarks"
