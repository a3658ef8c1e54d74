"""Addresses of the public pages."""

from django.urls import path

from leaderboard.pages import account
from leaderboard.pages.access import unslashed
from leaderboard.pages.agent import agent
from leaderboard.pages.board import board, board_csv, markdown
from leaderboard.pages.charts import plot
from leaderboard.pages.compare import compare
from leaderboard.pages.elsewhere import badge, card, embed
from leaderboard.pages.for_programs import cite, data, feed, robots, signing_key, sitemap
from leaderboard.pages.health import health
from leaderboard.pages.history import history
from leaderboard.pages.home import home, methods, submit
from leaderboard.pages.tasks import task, tasks
from leaderboard.pages.uncertainty import uncertainty
from leaderboard.pages.validity import validity

app_name = "pages"
urlpatterns = [
    path("", home, name="home"),
    path("b/<slug:slug>", board, name="board"),
    path("b/<slug:slug>/v<int:number>", board, name="version"),
    path("b/<slug:slug>/board.md", markdown, name="board_markdown"),
    path("b/<slug:slug>/board.csv", board_csv, name="board_csv"),
    path("b/<slug:slug>/history", history, name="history"),
    path("b/<slug:slug>/data", data, name="data"),
    path("b/<slug:slug>/feed", feed, name="feed"),
    path("b/<slug:slug>/badge.svg", badge, name="badge"),
    path("b/<slug:slug>/card.png", card, name="card"),
    path("b/<slug:slug>/cite", cite, name="cite"),
    path("b/<slug:slug>/embed", embed, name="embed"),
    path("b/<slug:slug>/compare", compare, name="compare"),
    path("b/<slug:slug>/validity", validity, name="validity"),
    path("b/<slug:slug>/uncertainty", uncertainty, name="uncertainty"),
    path("b/<slug:slug>/health", health, name="health"),
    path("b/<slug:slug>/tasks", tasks, name="tasks"),
    path("b/<slug:slug>/tasks/<int:pk>", task, name="task"),
    path("b/<slug:slug>/agents/<int:pk>", agent, name="agent"),
    path("b/<slug:slug>/plots/<slug:name>.svg", plot, name="plot"),
    path("b/<path:rest>/", unslashed, name="unslashed"),
    path("methods", methods, name="methods"),
    path("submit", submit, name="submit"),
    path("robots.txt", robots, name="robots"),
    path("sitemap.xml", sitemap, name="sitemap"),
    path("account", account.account, name="account"),
    path("account/tokens", account.token_made, name="token_made"),
    path("account/tokens/<slug:public_id>/revoke", account.token_revoked, name="token_revoked"),
    path("account/mail", account.mail, name="mail"),
    path("submissions/<uuid:uuid>", account.submission, name="submission"),
    path("submissions/<uuid:uuid>/withdraw", account.withdraw_submission, name="withdrawn"),
    path("b/<slug:slug>/agents/<int:pk>/report", account.report_agent, name="report"),
    path("invitation/<str:secret>", account.invitation, name="invitation"),
    path(".well-known/bandstand-key", signing_key, name="signing_key"),
]
