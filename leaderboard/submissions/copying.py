"""Bulk rows in and out of PostgreSQL: the one place where COPY is spoken."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any

import numpy as np
import pyarrow as pa
from django.db import connection, models
from psycopg import ClientCursor, Copy, sql

BLOCK_ROWS = 8192  # about 256 KiB at the width of an outcome
BLOCK_BYTES = 1 << 18
# COPY's binary form of a column, where Arrow has the very type: what the server need not read as text; and
# the function by which the server writes it.
BINARY = {
    "smallint": (pa.int16(), ">i2", "int2send"),
    "integer": (pa.int32(), ">i4", "int4send"),
    "bigint": (pa.int64(), ">i8", "int8send"),
    "real": (pa.float32(), ">f4", "float4send"),
    "double precision": (pa.float64(), ">f8", "float8send"),
    "boolean": (pa.bool_(), "u1", "boolsend"),
}
OF_ARROW = {kind: (stored, form, send) for stored, (kind, form, send) in BINARY.items()}
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no header extension
END = b"\xff\xff"


@contextmanager
def _copy(statement: sql.Composed | str, parameters: Sequence[object] = ()) -> Iterator[Copy]:
    """Speak COPY; errors come as Django's (IntegrityError, …), as they do from the ORM."""
    with connection.wrap_database_errors, connection.cursor() as cursor:
        # The cursor of a debugging connection copies a statement, but takes no parameters
        if isinstance(statement, str):
            text = ClientCursor(connection.connection).mogrify(statement, parameters)
        else:
            text = statement.as_string(connection.connection)
        with cursor.copy(text) as copy:
            yield copy


def copy_in(table: pa.Table, *, model: type[models.Model]) -> None:
    """Append `table`, whose columns are named as those of the model's table."""
    # The binary form of each column; empty where one has none, or is of another type than the database's
    stored = {field.column: field.db_type(connection) for field in model._meta.concrete_fields}
    forms = [BINARY.get(stored.get(name) or "", (None, "", "")) for name in table.column_names]
    is_exact = all(column.type == of for column, (of, _, _) in zip(table.columns, forms, strict=True))
    numbers = [form for _, form, _ in forms] if is_exact else []
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT {})").format(
        sql.Identifier(model._meta.db_table),
        sql.SQL(", ").join(map(sql.Identifier, table.column_names)),
        sql.SQL("binary" if numbers else "csv"),
    )
    with _copy(statement) as copy:
        if numbers:
            copy.write(SIGNATURE)
            for batch in table.to_batches(max_chunksize=BLOCK_ROWS):
                copy.write(_binary_rows(batch, numbers))
            copy.write(END)
        else:
            import pyarrow.csv as arrow_csv

            options = arrow_csv.WriteOptions(include_header=False, batch_size=BLOCK_ROWS)
            arrow_csv.write_csv(table, pa.PythonFile(_CopySink(copy), mode="w"), options)


def copy_new(rows: Sequence[models.Model]) -> None:
    """Append rows of one model, which the database numbers: `bulk_create` takes several times as long."""
    if not rows:
        return
    fields = [field for field in rows[0]._meta.concrete_fields if not field.primary_key]
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(rows[0]._meta.db_table),
        sql.SQL(", ").join(map(sql.Identifier, [field.column or "" for field in fields])),
    )
    with _copy(statement) as copy:
        for row in rows:
            copy.write_row(
                [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]
            )


def copy_out(query: str, parameters: Sequence[object], *, schema: pa.Schema) -> pa.Table:
    import pyarrow.csv as arrow_csv

    with _copy(f"COPY ({query}) TO STDOUT (FORMAT csv)", parameters) as copy:
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


def numbers_out(
    query: str, parameters: Sequence[object], *, schema: pa.Schema, n_same: int, nullable: Sequence[str]
) -> pa.Table:
    """Read rows of numbers by the million, in the order of the query, which begins with the first column.

    The first `n_same` columns are equal where the first is. Rows that share it come as one, which has a value
    for each other column: as many rows of COPY take several times as long.
    """
    (first, *same), others = schema.names[:n_same], list(schema)[n_same:]
    is_null = " + ".join(f"{2**bit} * ({name} IS NULL)::int" for bit, name in enumerate(nullable))
    keys = [OF_ARROW[kind][0] for kind in schema.types[:n_same]]
    types = [OF_ARROW[field.type] for field in others]
    sent = [f"{send}({field.name}::{stored})" for field, (stored, _, send) in zip(others, types, strict=True)]
    columns = [f"{first}::{keys[0]}"]
    columns += [f"min({name})::{key}" for name, key in zip(same, keys[1:], strict=True)]
    columns += ["count(*)"]
    columns += [f"string_agg({one}, '')" for one in (*sent, f"int2send(({is_null})::smallint)")]
    with _copy(
        f"COPY (SELECT {', '.join(columns)} FROM ({query}) AS rows ({', '.join(schema.names)})"
        f" GROUP BY {first} ORDER BY {first}) TO STDOUT (FORMAT binary)",
        parameters,
    ) as copy:
        copy.set_types([*keys, "bigint", *("bytea" for _ in columns[n_same + 1 :])])
        groups = list(zip(*copy.rows(), strict=True))
    if not groups:
        return schema.empty_table()
    *joined, nulls = (b"".join(part or b"" for part in parts) for parts in groups[n_same + 1 :])
    null_bits = np.frombuffer(nulls, ">i2")
    arrays = [pa.array(np.repeat(np.array(key), groups[n_same])) for key in groups[:n_same]]
    for field, part in zip(others, joined, strict=True):
        present = np.frombuffer(part, OF_ARROW[field.type][1])  # without what is null
        mask = np.zeros(len(null_bits), np.bool_)
        if len(present) < len(mask):
            mask = (null_bits & 2 ** nullable.index(field.name)) > 0
        values = np.zeros(len(mask), present.dtype.newbyteorder("="))
        values[~mask] = present
        arrays.append(pa.array(values, field.type, mask=mask))
    return pa.table(arrays, names=schema.names).cast(schema)


def text_out(rows: "models.QuerySet[Any]") -> Iterator[bytes]:
    """Give the rows of a query as COPY prints them, in blocks."""
    query, parameters = rows.query.sql_with_params()
    with _copy(f"COPY ({query}) TO STDOUT", parameters) as copy:
        lines = map(bytes, copy)
        while block := b"".join(islice(lines, BLOCK_ROWS)):
            yield block


def text_in(text: IO[bytes], *, into: sql.Composable, columns: sql.Composable) -> None:
    with _copy(sql.SQL("COPY {} ({}) FROM STDIN").format(into, columns)) as copy:
        while block := text.read(BLOCK_BYTES):
            copy.write(block)


def _binary_rows(batch: pa.RecordBatch, forms: Sequence[str]) -> bytes:
    """Rows as COPY's binary format has them: the number of fields, then each one's length and value."""
    fields = [part for f, form in enumerate(forms) for part in ((f"n{f}", ">i4"), (f"v{f}", form))]
    rows = np.zeros(batch.num_rows, dtype=[("n", ">i2"), *fields])
    mask = np.ones((batch.num_rows, rows.itemsize), dtype=np.bool_)
    rows["n"], ends = len(forms), np.cumsum([rows.dtype[name].itemsize for name in rows.dtype.names or ()])
    for f, column in enumerate(batch.columns):
        nothing = 0 if column.type != pa.bool_() else False
        filled = column.fill_null(nothing).to_numpy(zero_copy_only=False)
        rows[f"n{f}"], rows[f"v{f}"] = rows.dtype[f"v{f}"].itemsize, filled
        if column.null_count:
            is_null = column.is_null().to_numpy(zero_copy_only=False)
            rows[f"n{f}"][is_null] = -1
            mask[is_null, ends[2 * f + 1] : ends[2 * f + 2]] = False
    octets = rows.view(np.uint8).reshape(mask.shape)
    return (octets if mask.all() else octets[mask]).tobytes()


class _CopySink:
    """The file that pyarrow writes to. It is closed with the COPY, not before."""

    closed = False

    def __init__(self, copy: Copy) -> None:
        self.write = copy.write

    def flush(self) -> None: ...

    def close(self) -> None: ...
