import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations import Migration

from leaderboard.initial_migration import InitialMigration
from tests.leaderboard.databases import database, empty_database

SCHEMA = {
    "columns": "SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, "
    "character_maximum_length FROM information_schema.columns WHERE table_schema = 'public'",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
}


def test_nothing_is_left_to_migrate(db):
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_tables_made_at_once_are_those_made_one_by_one(monkeypatch):
    found = []
    for apply in (InitialMigration.apply, Migration.apply):
        monkeypatch.setattr(InitialMigration, "apply", apply)
        with empty_database() as name, database(name):
            call_command("migrate", verbosity=0)
            with connection.cursor() as cursor:
                found.append(
                    {
                        part: sorted(cursor.execute(query).fetchall(), key=repr)
                        for part, query in SCHEMA.items()
                    }
                )
    at_once, one_by_one = found
    assert at_once == one_by_one
    assert len(at_once["columns"]) > 500
    assert len(at_once["triggers"]) > 50
