"""Bulk rows in and out of PostgreSQL: the one place where COPY is spoken."""

from collections.abc import Sequence

import pyarrow as pa
from django.db import connection, models
from psycopg import Copy, sql

BLOCK_ROWS = 8192  # about 256 KiB of text at the width of an outcome


def copy_in(table: pa.Table, *, model: type[models.Model]) -> None:
    """Append `table`, whose columns are named as those of the model's table.

    Errors come as Django's (IntegrityError, …), as they do from the ORM.
    """
    import pyarrow.csv as arrow_csv

    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        sql.Identifier(model._meta.db_table), sql.SQL(", ").join(map(sql.Identifier, table.column_names))
    )
    options = arrow_csv.WriteOptions(include_header=False, batch_size=BLOCK_ROWS)
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        arrow_csv.write_csv(table, pa.PythonFile(_Sink(copy), mode="w"), options)


def copy_out(query: str, parameters: Sequence[object], *, schema: pa.Schema) -> pa.Table:
    """Return the rows of a query as a table of this schema."""
    import pyarrow.csv as arrow_csv

    statement = f"COPY ({query}) TO STDOUT (FORMAT csv)"
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement, parameters) as copy,
    ):
        text = b"".join(bytes(block) for block in copy)
    if not text:
        return schema.empty_table()
    return arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=schema.names),
        convert_options=arrow_csv.ConvertOptions(
            column_types=schema, true_values=["t"], false_values=["f"], strings_can_be_null=True
        ),
    )


class _Sink:
    """The file that pyarrow writes to. It is closed with the COPY, not before."""

    closed = False

    def __init__(self, copy: Copy) -> None:
        self.write = copy.write

    def flush(self) -> None: ...

    def close(self) -> None: ...
