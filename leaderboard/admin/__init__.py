"""The operators' admin: what needs a decision, and a page for each thing that one can do about it."""

from django.apps import AppConfig


class BackofficeConfig(AppConfig):
    name = "leaderboard.admin"
    label = "backoffice"
    verbose_name = "Operations"
