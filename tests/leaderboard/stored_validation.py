"""One nested validation, made once: pages, commands and studies that show one start from it.

Where the form of a validation has changed, which a test sees, this makes it anew:
`python manage.py shell -c "from tests.leaderboard import stored_validation; stored_validation.write()"`.
"""

import gzip
import io
import json
from pathlib import Path

from tests.toys import AS_OF, csv_text, ladder

STORED = Path(__file__).with_name("validation.json.gz")
AGENTS, TASKS = 16, 20


def stored():
    """The result for `ladder(16, 20)`, which is the benchmark "toy" of the tests."""
    return json.loads(gzip.decompress(STORED.read_bytes()))


def store(benchmark):
    """A validation of the benchmark's present data, without making it."""
    from leaderboard.studies.models import ValidationStudy
    from leaderboard.studies.records import Reader
    from leaderboard.studies.services import store_study

    return store_study(ValidationStudy, snapshot=Reader(benchmark).now(None), result=stored(), as_of=AS_OF)


def made(**options):
    from analytics.flat_file import read
    from analytics.record import Record
    from selection.validation import as_json, validate

    text = io.BytesIO(csv_text(ladder(AGENTS, TASKS)).encode())
    record = Record.from_flat(read(text, as_of=AS_OF, name="toy.csv"))
    return as_json(validate(record.table, **options))


def write():
    STORED.write_bytes(gzip.compress(json.dumps(made(), allow_nan=False).encode(), mtime=0))
