"""A benchmark with all that an operator may see, and the people who may or may not see it."""

from django.apps import apps

from leaderboard.accounts.models import User
from leaderboard.accounts.services import confirm_address
from leaderboard.catalog.models import Benchmark, Membership, Role
from leaderboard.operations.benchmarks import create_benchmark
from tests.toys import csv_text, ladder, load_text

PASSWORD = "a long road to the fair"


def person(email, *, role=None, benchmark=None, staff=False):
    user = User.objects.create_user(email, PASSWORD, is_staff=staff)
    confirm_address(user=user)
    if role:
        Membership.objects.create(user=user, benchmark=benchmark, role=role)
    return user


def recorded(row):
    """What the audit holds of a row, oldest first."""
    changes = apps.get_model(f"{row._meta.label}Change").objects.filter(pgh_obj=row)
    told = changes.exclude(pgh_context=None).order_by("pgh_id")
    return [change.pgh_context.metadata for change in told]


def people(benchmark):
    """One of each kind, by kind; None is nobody."""
    other = create_benchmark(slug="other", title="Other", tasks=[], by=None, reason="a second one")
    return {
        "anonymous": None,
        "viewer": person("viewer@example.org", role=Role.VIEWER, benchmark=benchmark),
        "submitter": person("submitter@example.org", role=Role.SUBMITTER, benchmark=benchmark),
        "another's operator": person("another@example.org", role=Role.OPERATOR, benchmark=other),
        "operator": person("operator@example.org", role=Role.OPERATOR, benchmark=benchmark),
        "staff": person("staff@example.org", staff=True),
    }


def toy():
    load_text(csv_text(ladder(16, 20)))
    return Benchmark.objects.get(slug="toy")
