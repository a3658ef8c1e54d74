"""COPY of a million outcomes into the outcome table, against the same COPY into a bare table without keys.

The rival is the least that PostgreSQL can do with these rows: no primary key, no check, no trigger. Median of
five alternating runs, each committed, on a server of its own; the submissions are new in each run, as in
life. Run with `python -m perf.copy_outcomes`.
"""

import atexit
import os
import shutil
import statistics
import tempfile
import time

import numpy as np
import pyarrow as pa

from leaderboard import postgres

N_ROWS = 1_000_000
N_RUNS = 5
N_SUBMISSIONS = 200
BARE = "CREATE TABLE bare AS TABLE submissions_outcome WITH NO DATA"
LIMIT = 4.0


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
    from leaderboard.submissions.models import Outcome

    class Bare(models.Model):  # noqa: DJ008  nobody prints it
        class Meta:
            app_label = "perf"
            db_table = "bare"
            managed = False

    def seconds(model: type[models.Model], rows: pa.Table) -> float:
        begin = time.perf_counter()
        with transaction.atomic():
            copy_in(rows, model=model)
        return time.perf_counter() - begin

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(BARE)
    rng = np.random.default_rng(1)
    runs = [
        [seconds(model, rows) for model in (Outcome, Bare)]
        for rows in (outcome_rows(rng, i) for i in range(N_RUNS))
    ]
    outcome, bare = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"COPY of {N_ROWS:,} rows, median of {N_RUNS} alternating runs")
    print(f"outcome table {outcome:.2f} s, bare table {bare:.2f} s")
    print(f"ratio {outcome / bare:.2f} (at most {LIMIT:g})")


if __name__ == "__main__":
    main()
