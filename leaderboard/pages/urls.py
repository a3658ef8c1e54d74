"""Addresses of the public pages."""

from django.urls import path

from leaderboard.pages import views

app_name = "pages"
urlpatterns = [
    path("", views.home, name="home"),
    path("b/<slug:slug>", views.board, name="board"),
    path("b/<slug:slug>/validity", views.validity, name="validity"),
    path("b/<slug:slug>/uncertainty", views.uncertainty, name="uncertainty"),
]
