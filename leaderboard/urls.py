"""Every address of the service."""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("leaderboard.api.urls")),
    path("", include("leaderboard.pages.urls")),
]
