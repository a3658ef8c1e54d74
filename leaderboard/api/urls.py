"""Addresses under /api/v1/."""

from django.urls import path, re_path

from leaderboard.api import errors, views

app_name = "api"
urlpatterns = [
    path("benchmarks/<slug:slug>/board", views.BoardView.as_view(), name="board"),
    path("benchmarks/<slug:slug>/submissions", views.SubmissionsView.as_view(), name="submissions"),
    re_path("", errors.not_found),
]
