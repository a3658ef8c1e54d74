"""`export-benchmark` and `import-benchmark`: one benchmark with its history to another installation."""

import json
import stat
import zipfile
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import IntegerField
from django.test import Client

from leaderboard.accounts.models import ApiToken, User
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import entries_of, standings_of
from leaderboard.boards.signing import digest
from leaderboard.boards.stored import stored_digest
from leaderboard.catalog.models import Agent, Benchmark, Membership, Policy, Scaffold, Task
from leaderboard.operations.corrections import verify
from leaderboard.operations.erasing import erase_agent
from leaderboard.operations.models import Assignment, Reselection, Webhook
from leaderboard.operations.naming import agent_named
from leaderboard.operations.services import recompute
from leaderboard.operations.transfer import BY_NUMBER, NAMED, PATHS, rows_of
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.rules import policy_values
from leaderboard.submissions.models import Status, Submission
from tests.leaderboard.api.deliver import body, send, token_for
from tests.toys import AS_OF, csv_text, in_subset, load_text, moved, only, passing, recomputed

LEFT_BEHIND = {
    *("Membership", "Invitation", "Webhook", "IdempotencyKey", "FailedAttempts"),  # rights and secrets
    *("Event", "Notification", "NotificationAttempt", "JobRun", "Upload"),  # what was done there
    "AgentScores",  # computed anew
    "VerifiedReference",
}
LATER = csv_text(passing([9] * 20, n_agents=16, seed=4, prefix="l"), day="2026-03-05")


def lived():
    """A benchmark on which much has happened."""
    moved()
    recomputed()
    why = ("--reason", "as an operator would")
    call_command("reselect", "toy", "--propose", "the rates moved")
    number = str(Reselection.objects.get().pk)
    call_command("reselect", "toy", "--approve", number, "--variant", "plain", *why)
    tasks = in_subset(recomputed())
    marks = only("1" * 20, tasks)
    rows = [{"task": f"t{j:02d}", "trial": 1, "outcome": 1} for j, m in enumerate(marks) if m != "."]
    token = token_for()
    answer = send(body("newcomer", outcomes=rows), token=token)
    assert answer.status_code == 201, answer.content
    call_command("rename", "toy", "a03", "An Agent", *why)
    call_command("trust", "toy", "ada@example.org", *why)
    verify(uuid=Submission.objects.get(agent__name="newcomer").uuid, note="rerun", as_of=AS_OF)
    call_command("retire", "toy", "t19", *why)
    call_command("policy", "toy", "--set", "assignment=staged")
    recomputed()
    who = ("--agent", "chosen", "--scaffold", "Loop", "--model", "M chosen", "--for", "ada@example.org")
    call_command("assign", "toy", *who)
    asked = Task.objects.filter(pk__in=Assignment.objects.get(agent__name="chosen").tasks)
    batch = [{"task": task.name, "trial": 1, "outcome": 1} for task in asked]
    assert send(body("chosen", outcomes=batch), token=token).status_code == 201
    call_command("policy", "toy", "--set", "assignment=subset")
    call_command("webhooks", "toy", "--add", "https://hooks.example/x")
    call_command("reruns", "toy", "--open", "to be sure")
    who = ("--agent", "asked", "--scaffold", "Loop", "--model", "M asked", "--for", "ada@example.org")
    call_command("assign", "toy", *who)
    answer = send(body("asked", outcomes=rows), token=token)
    assert answer.status_code == 201, answer.content
    recomputed()
    call_command("variance", "toy")
    call_command("drift", "toy")
    return recomputed()


def state(slug):
    """What anybody sees, by names; no id."""
    found = Benchmark.objects.get(slug=slug)
    entries = Entry.objects.filter(board__benchmark=found).order_by("board__number", "position")
    asked = Assignment.objects.get(agent__benchmark=found, agent__name="asked")
    assert {Task.objects.get(pk=pk).benchmark for pk in asked.tasks} == {found}
    (chosen,) = Submission.objects.filter(agent__benchmark=found).exclude(study_id=None)
    return {
        "chosen": (StagedStudy.objects.get(pk=chosen.study_id).benchmark, chosen.agent.name)
        == (found, "chosen"),
        "rows": {model.__name__: rows_of(model, found).count() for model in PATHS},
        "boards": list(found.boards.order_by("number").values_list("number", "digest", "published_at")),
        "standings": standings_of(found.boards.order_by("-number")[0]).as_plain(),
        "entries": list(entries.values_list("agent__name", "name", "rank", "line")),
        "submissions": list(
            Submission.objects.filter(agent__benchmark=found)
            .order_by("id")
            .values_list("uuid", "agent__name", "status", "submitted_by__email", "links", "n_outcomes")
        ),
        "asked": [Task.objects.get(pk=pk).name for pk in asked.tasks],
        "version": found.data_version,
    }


def forget():
    """Let this be another installation, whose ids have come further."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE catalog_benchmark, catalog_scaffold, catalog_model, accounts_user, submissions_setting,"
            " submissions_submission, submissions_outcome, submissions_outcomedetail CASCADE"
        )
    load_text(csv_text({"other": "01"}, benchmark="Other"), slug="other")


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_a_benchmark_moves_with_its_boards_and_lives_on(by_ridge, tmp_path, capsys):
    board, file = lived(), tmp_path / "toy.zip"
    call_command("export-benchmark", "toy", str(file))
    said = capsys.readouterr().out
    assert f"{file}: toy, 669 outcomes, {board.number} boards, 1 account." in said
    assert "not frozen: later results" in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    there, ids = state("toy"), set(Agent.objects.values_list("pk", flat=True))
    assert not [name for name, n in there["rows"].items() if not n and name not in NEVER_THERE]
    with pytest.raises(CommandError, match="There is a benchmark toy already; --slug"):
        call_command("import-benchmark", str(file))
    with pytest.raises(CommandError, match="It already exists here as toy"):
        call_command("import-benchmark", str(file), "--slug", "again")
    load_text(LATER)
    next_digest = recomputed().digest
    forget()
    Scaffold.objects.filter(name="Loop").update(name="LOOP")
    with pytest.raises(
        CommandError, match=r"^'Loop' is called 'LOOP' here: a board would name it otherwise\.$"
    ):
        call_command("import-benchmark", str(file))
    assert list(Benchmark.objects.values_list("slug", flat=True)) == ["other"]
    Scaffold.objects.filter(name="LOOP").update(name="Loop")
    call_command("import-benchmark", str(file), "--slug", "here")
    assert "here: 669 outcomes" in capsys.readouterr().out
    assert state("here") == there
    agents = set(Agent.objects.filter(benchmark__slug="here").values_list("pk", flat=True))
    assert not ids & agents
    proposal = Reselection.objects.get()
    assert set(proposal.content["chosen_from"]) <= agents
    assert {row["agent"] for row in proposal.content["variants"]["plain"]["deltas"]} <= agents
    assert not [model for model in (Membership, ApiToken, Webhook) if model.objects.exists()]
    assert not User.objects.get(email="ada@example.org").has_usable_password()
    assert_lives_on(next_digest, there)


def assert_lives_on(next_digest, there):
    """Nothing is behind; what comes next makes the board that it would have made before."""
    found = Benchmark.objects.get(slug="here")
    again, is_new = recompute(benchmark=found, as_of=AS_OF)
    assert (is_new, again.digest) == (False, there["boards"][-1][1])
    assert Client().get(f"/b/here/v{again.number}").status_code == 200
    load_text(LATER, slug="here")
    assert recomputed("here").digest == next_digest


NEVER_THERE = {
    *("AgentAlias", "InvalidConfirmation", "Approval", "OutcomeDetail"),
    *("ValidationStudy", "Alert", "Dispute", "Erasure"),
}


@pytest.mark.django_db(transaction=True)
def test_what_cannot_move_is_refused_in_one_line(tmp_path):
    load_text(csv_text({"a": "10"}))
    file = tmp_path / "toy.zip"
    call_command("export-benchmark", "toy", str(file))
    with zipfile.ZipFile(file) as archive:
        about = json.loads(archive.read("about.json"))
    for name, content, why in (
        ("none.zip", b"none", "^This is no file that `export-benchmark` wrote: "),
        ("empty.zip", zipped({}), "^This is no file that `export-benchmark` wrote: "),
        (
            "other.zip",
            zipped({"about.json": json.dumps(about | {"migrations": []})}),
            "^The file was written by another release: bring both installations to the same one",
        ),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CommandError, match=why):
            call_command("import-benchmark", str(tmp_path / name), "--slug", "elsewhere")
    Submission.objects.update(status=Status.WAITING)
    with pytest.raises(
        CommandError, match="1 submission waits for a check, a review or the end of an embargo"
    ):
        call_command("export-benchmark", "toy", str(tmp_path / "again.zip"))
    assert not (tmp_path / "again.zip").exists()


@pytest.mark.django_db(transaction=True)
def test_a_file_that_was_tampered_with_changes_no_other_benchmark(tmp_path):
    load_text(csv_text({"a": "10"}))
    recomputed()
    file, parts = tmp_path / "toy.zip", exported(tmp_path)
    forget()
    other = Benchmark.objects.get()
    before, furthest = list(rows_of(Submission, other).values()), furthest_id(Submission)
    for name, place, number in (
        ("submissions_outcome", 0, "-7"),  # a submission of another benchmark
        ("catalog_task", 1, "-1"),  # its tasks
        ("submissions_submission", 0, str(2**30)),  # half of the ids that there are
    ):
        lines = [line.split("\t") for line in parts[name].splitlines()]
        lines[0][place] = number
        text = "".join("\t".join(line) + "\n" for line in lines)
        (tmp_path / "bad.zip").write_bytes(zipped(parts | {name: text}))
        with pytest.raises(CommandError, match=r"points to rows that are not in the file|too far apart"):
            call_command("import-benchmark", str(tmp_path / "bad.zip"))
    twice = parts["catalog_agent"] * 2
    for content in (
        zipped(parts | {"catalog_agent": twice}),
        zipped(parts | {"about.json": "[]"}),
        zipped(parts | {"boards_entry": parts["boards_entry"].replace('"how"', '"who"')}),
        zipped(parts | {"boards_entry": parts["boards_entry"].replace('"marks": [', '"marks": [7, ')}),
        with_row(parts, Entry, -1, line=lambda text: text.replace(": 1,", f": 1{'0' * 400},")),
        with_row(parts, Submission, 0, embargo_until="9999-12-31 23:59:59-12"),
        with_row(parts, Submission, 0, submitted_at="0001-01-01 00:00:00+12"),
        with_row(parts, Submission, 0, received_at="infinity"),
        zipped(parts | {"about.json": parts["about.json"].replace('"toy"', '"a b/c"')}),  # is no address
        zipped(parts)[:-200],
        bytes(byte ^ (200 < place < 400) for place, byte in enumerate(file.read_bytes())),
    ):
        (tmp_path / "bad.zip").write_bytes(content)
        with pytest.raises(CommandError, match=r"^This is no file that `export-benchmark` wrote: "):
            call_command("import-benchmark", str(tmp_path / "bad.zip"))
    assert list(rows_of(Submission, other).values()) == before
    assert furthest <= furthest_id(Submission) < furthest + 10
    call_command("import-benchmark", str(file))
    assert Submission.objects.count() == 2


def exported(tmp_path):
    call_command("export-benchmark", "toy", str(tmp_path / "toy.zip"))
    with zipfile.ZipFile(tmp_path / "toy.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def with_row(parts, model, number, **values):
    """The file with other texts in one row of a table; a function makes one of the text that is there."""
    lines = parts[model._meta.db_table].splitlines()
    names = [field.name for field in model._meta.concrete_fields]
    row = dict(zip(names, lines[number].split("\t"), strict=True))
    made = {name: value(row[name]) if callable(value) else value for name, value in values.items()}
    assert all(row[name] != value for name, value in made.items())
    lines[number] = "\t".join((row | made).values())
    return zipped(parts | {model._meta.db_table: "\n".join(lines) + "\n"})


def refused_as(tmp_path, content):
    (tmp_path / "bad.zip").write_bytes(content)
    with pytest.raises(CommandError) as refused:
        call_command("import-benchmark", str(tmp_path / "bad.zip"))
    assert not Benchmark.objects.filter(slug="toy").exists()
    return str(refused.value)


@pytest.mark.django_db(transaction=True)
def test_a_falsified_board_is_refused(tmp_path):
    load_text(csv_text({"a": "1" * 20, "b": "01" * 10}))
    recomputed()
    erase_agent(agent=agent_named(Benchmark.objects.get(), "a"), by=None, reason="asked for", as_of=AS_OF)
    later = recomputed(as_of=AS_OF + timedelta(hours=1))
    erased, named = (entry.name for entry in later.entries.order_by("position"))
    parts = exported(tmp_path)
    forget()
    for content in (
        with_row(parts, Entry, -2, line=lambda text: text.replace('"score": 1.0', '"score": 0.9')),
        with_row(parts, Entry, -1, name=erased),
        with_row(parts, Entry, -1, name="c", line=lambda text: f'{{"agent": "{named}", {text[1:]}'),
        with_row(parts, Board, -1, digest="0" * 64),
        with_row(parts, Policy, 0, band_lo="0.2"),
    ):
        assert refused_as(tmp_path, content).startswith("Board 2 does not match its digest: ")
    call_command("import-benchmark", str(tmp_path / "toy.zip"))
    boards = Board.objects.filter(benchmark__slug="toy").order_by("number")
    matches = [stored_digest(board, entries_of(board)) == board.digest for board in boards]
    assert matches == [False, True]  # the first speaks for the name that was erased


def test_a_fraction_that_the_database_gives_back_as_a_whole_number_keeps_its_digest():
    board = Board(content={"subset": None}, policy=Policy())
    published = digest(
        policy=policy_values(board.policy), subset=None, agents=[{"agent": "a", "n_tokens": 3e16}]
    )
    assert stored_digest(board, [Entry(name="a", line={"n_tokens": 3 * 10**16})]) == published


@pytest.mark.django_db(transaction=True)
def test_names_that_load_would_refuse_are_refused(tmp_path):
    load_text(csv_text({"a": "10"}))
    recomputed()
    parts = exported(tmp_path)
    forget()
    unseen = "a name has no invisible character U+202E (character 2)"
    for model, field, value, told in (
        (Task, "name", "t\u202e1", rf'task.name "t\u202e1": {unseen}'),
        (Task, "category", "t\u202e1", rf'task.category "t\u202e1": {unseen}'),
        (Agent, "name", "", 'agent.name "": a name is not empty'),
        (Agent, "version", "x  y", 'agent.version "x  y": a name has one space between words (character 3)'),
        (Benchmark, "title", "T\u202e\x07", rf'benchmark.title "T\u202e\x07": {unseen}'),
        (Benchmark, "title", "", 'benchmark.title "": This field cannot be blank.'),
        (Benchmark, "url", "javascript:alert(1)", 'benchmark.url "javascript:alert(1)": Enter a valid URL.'),
    ):
        assert_names_are_refused(tmp_path, with_row(parts, model, 0, **{field: value}), told)
    for kind, name in (("scaffold", "Loop"), ("model", "Model a")):
        about = parts["about.json"].replace(f'"{name}"', f'" {name}"')
        told = f'{kind}.name " {name}": a name neither begins nor ends with white space'
        assert_names_are_refused(tmp_path, zipped(parts | {"about.json": about}), told)
    assert not Scaffold.objects.filter(name=" Loop").exists()


def assert_names_are_refused(tmp_path, content, told):
    first, *lines = refused_as(tmp_path, content).splitlines()
    assert first == "The file breaks rules for names. Nothing was stored."
    assert told in [line.strip() for line in lines]


@pytest.mark.django_db(transaction=True)
def test_a_flipped_byte_is_told_in_one_line(tmp_path, caplog):
    """As much as to be read in blocks, each of which the server has taken when the damage is found."""
    load_text(csv_text({f"a{i}": "01" * 500 for i in range(20)}))
    file = tmp_path / "toy.zip"
    call_command("export-benchmark", "toy", str(file))
    forget()
    with zipfile.ZipFile(file) as archive:
        rows = archive.getinfo("submissions_outcome")
    content = bytearray(file.read_bytes())
    for place in (rows.compress_size // 2, rows.compress_size - 9):
        content[rows.header_offset + 100 + place - 60] ^= 1
        file.write_bytes(content)
        with pytest.raises(CommandError, match=r"^This is no file that `export-benchmark` wrote: [^\n]+$"):
            call_command("import-benchmark", str(file))
    assert not caplog.records
    assert list(Benchmark.objects.values_list("slug", flat=True)) == ["other"]


def furthest_id(model):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT last_value FROM {model._meta.db_table}_id_seq")
        return cursor.fetchone()[0]


def zipped(files):
    import io

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def test_every_table_moves_or_is_left_behind_on_purpose():
    named = {model.__name__ for model in NAMED}
    for label in ("catalog", "submissions", "studies", "boards", "operations"):
        for model in apps.get_app_config(label).get_models(include_auto_created=True):
            is_audit = model.__name__.endswith("Change") and model.__name__ != "StatusChange"
            assert is_audit or (model in PATHS) != (model.__name__ in LEFT_BEHIND | named), model


def test_every_column_that_points_somewhere_is_moved():
    for model in PATHS:
        for field in model._meta.concrete_fields:
            if field.related_model is not None:
                assert field.related_model in {*PATHS, *NAMED, ApiToken}, field
            is_array = isinstance(field, ArrayField) and isinstance(field.base_field, IntegerField)
            is_loose = field.attname.endswith("_id") and field.related_model is None
            assert (is_array or is_loose) == ((model, field.attname) in BY_NUMBER), field
    assert Board in PATHS
