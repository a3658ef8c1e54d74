from django.apps import AppConfig


class BackofficeConfig(AppConfig):
    name = "leaderboard.admin"
    label = "backoffice"
    verbose_name = "Operations"
