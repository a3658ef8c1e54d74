"""The page of an invitation: it opens an account, or gives one a role. It alone knows who is signed in."""

from django import forms
from django.contrib.auth import authenticate, login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from leaderboard.accounts.models import User
from leaderboard.accounts.queries import has_confirmed_address
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.errors import Refusal
from leaderboard.operations.people import accept_invitation, invitation_of


class NewAccount(forms.Form):
    name = forms.CharField(label="Your name", max_length=255)
    password = forms.CharField(
        label="Password", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """GET shows what is offered; POST accepts it, once."""
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
