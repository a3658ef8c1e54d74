"""Addresses under /api/v1/."""

from django.urls import path

from leaderboard.api import views

app_name = "api"
urlpatterns = [
    path("benchmarks/<slug:slug>/board", views.BoardView.as_view(), name="board"),
    path("benchmarks/<slug:slug>/submissions", views.SubmissionsView.as_view(), name="submissions"),
]
