"""The house: every arrow points down."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps

ORDER = ("accounts", "catalog", "submissions", "studies", "boards", "operations")
ROOT = Path(__file__).resolve().parents[2]


def test_import_contracts_hold():
    linted = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("label", ORDER)
def test_no_foreign_key_points_up(label):
    below = {"auth", "contenttypes", *ORDER[: ORDER.index(label) + 1]}
    for model in apps.get_app_config(label).get_models():
        for field in model._meta.get_fields():
            if field.is_relation and not field.auto_created:
                assert field.related_model._meta.app_label in below, f"{model.__name__}.{field.name}"


def test_commands_start_without_what_costs_seconds():
    """`manage.py` answers in under a second only if these are imported where they are needed."""
    code = (
        "import sys, django; django.setup();"
        "from django.core.management import get_commands, load_command_class;"
        "[load_command_class(app, name) for name, app in get_commands().items() if 'leaderboard' in app];"
        "from django.urls import get_resolver; get_resolver().url_patterns;"
        "slow = {'scipy.stats', 'sklearn', 'pandas', 'pyarrow.parquet', 'altair'};"
        "print(sorted(slow & sys.modules.keys()))"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "leaderboard.settings", "PATH": "", "HOME": "/nonexistent"}
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment, check=True
    )
    assert printed.stdout.strip() == "[]"
