#!/usr/bin/env python
"""Bandstand's command line for operators."""

import os
import sys

from leaderboard import postgres

WITHOUT_DATABASE = {"check", "collectstatic", "help", "makemigrations", "version"}


def needs_database(arguments: list[str]) -> bool:
    return (
        bool(arguments)
        and arguments[0] not in WITHOUT_DATABASE
        and not {"-h", "--help", "--version"} & set(arguments)
    )


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    # Commands multiply many small matrices, where a second thread of BLAS costs more than it saves.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if needs_database(sys.argv[1:]):
        try:
            postgres.ensure()
        except postgres.EmbeddedPostgresError as error:
            sys.exit(f"{error}")

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
