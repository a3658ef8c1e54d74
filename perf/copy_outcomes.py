"""COPY of a million outcomes into the outcome table, against psycopg's COPY of their text into a bare table.

The rival is what a few lines of psycopg do: the rows as CSV, written by Arrow, into a table with no primary
key, no check and no trigger. Beside it stands our own COPY into the bare table: the rest is what the key
costs. Median of five alternating runs, each committed, on a server of its own; the submissions are new in
each run, as in life. Run with `python -m perf.copy_outcomes`.
"""

import atexit
import io
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import csv

from leaderboard import postgres

N_ROWS = 1_000_000
N_RUNS = 5
N_SUBMISSIONS = 200
BARE = "CREATE TABLE bare AS TABLE submissions_outcome WITH NO DATA"
LIMIT = 3.0


def outcome_rows(rng: np.random.Generator, run: int) -> pa.Table:
    """200 submissions of 1,000 tasks with five trials, as they are stored: in order of their key."""
    n_trials, n_tasks = 5, 1_000
    position = np.arange(N_ROWS)
    return pa.table(
        {
            "submission_id": pa.array(run * N_SUBMISSIONS + position // (n_tasks * n_trials), pa.int32()),
            "task_id": pa.array(position // n_trials % n_tasks, pa.int32()),
            "setting_id": pa.array(np.ones(N_ROWS), pa.int32()),
            "trial": pa.array(position % n_trials, pa.int16()),
            "value": pa.array(rng.integers(0, 2, N_ROWS), pa.float32()),
            "valid": pa.array(rng.random(N_ROWS) > 0.01),
        }
    )


def main() -> None:
    os.environ["BANDSTAND_HOME"] = tempfile.mkdtemp(prefix="bst-")
    atexit.register(shutil.rmtree, os.environ["BANDSTAND_HOME"], ignore_errors=True)
    postgres.ensure()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection, models, transaction

    from leaderboard.submissions.copying import copy_in
    from leaderboard.submissions.models import Outcome, RealField

    class Bare(models.Model):  # noqa: DJ008  nobody prints it
        """The columns of the outcome table."""

        submission_id, task_id, setting_id = (models.IntegerField() for _ in range(3))
        trial = models.SmallIntegerField(primary_key=True)  # for Django alone
        value, valid = RealField(null=True), models.BooleanField()

        class Meta:
            app_label = "perf"
            db_table = "bare"
            managed = False

    def seconds(copy: Callable[[pa.Table], object], rows: pa.Table) -> float:
        begin = time.perf_counter()
        with transaction.atomic():
            copy(rows)
        return time.perf_counter() - begin

    def rival(rows: pa.Table) -> None:
        text = io.BytesIO()
        csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
        with connection.cursor() as cursor, cursor.copy("COPY bare FROM STDIN (FORMAT csv)") as copy:
            copy.write(text.getbuffer())

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(BARE)
    rng = np.random.default_rng(1)
    runs = [
        (
            seconds(partial(copy_in, model=Outcome), rows),
            seconds(partial(copy_in, model=Bare), rows),
            seconds(rival, rows),
        )
        for rows in (outcome_rows(rng, i) for i in range(N_RUNS))
    ]
    outcome, bare, text = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"COPY of {N_ROWS:,} rows, median of {N_RUNS} alternating runs")
    print(f"outcome table {outcome:.2f} s; bare table {bare:.2f} s, by psycopg as text {text:.2f} s")
    print(f"ratio to psycopg's text {outcome / text:.2f} (at most {LIMIT:g})")
    print(f"the key and the checks cost {outcome - bare:.2f} s")


if __name__ == "__main__":
    main()
