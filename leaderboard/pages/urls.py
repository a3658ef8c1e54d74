"""Addresses of the public pages."""

from django.urls import path

from leaderboard.pages import account, views
from leaderboard.pages.charts import plot
from leaderboard.pages.compare import compare
from leaderboard.pages.followed import submission
from leaderboard.pages.health import health
from leaderboard.pages.invitations import invitation
from leaderboard.pages.uncertainty import uncertainty
from leaderboard.pages.validity import validity

app_name = "pages"
urlpatterns = [
    path("", views.home, name="home"),
    path("b/<slug:slug>", views.board, name="board"),
    path("b/<slug:slug>/v<int:number>", views.board, name="version"),
    path("b/<slug:slug>/history", views.history, name="history"),
    path("b/<slug:slug>/compare", compare, name="compare"),
    path("b/<slug:slug>/validity", validity, name="validity"),
    path("b/<slug:slug>/uncertainty", uncertainty, name="uncertainty"),
    path("b/<slug:slug>/health", health, name="health"),
    path("b/<slug:slug>/plots/<slug:name>.svg", plot, name="plot"),
    path("account", account.account, name="account"),
    path("account/tokens", account.token_made, name="token_made"),
    path("account/tokens/<str:public_id>/revoke", account.token_revoked, name="token_revoked"),
    path("account/mail", account.mail, name="mail"),
    path("submissions/<uuid:uuid>", submission, name="submission"),
    path("invitation/<str:secret>", invitation, name="invitation"),
    path(".well-known/bandstand-key", views.signing_key, name="signing_key"),
]
