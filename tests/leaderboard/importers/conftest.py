import pytest

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.importers import ImportOptions
from tests.toys import AS_OF


@pytest.fixture
def read():
    """Read a file of another project; keywords are what is stated, or arguments of the reader."""

    def call(path, name=None, *, tasks=None, called=None, limits=importers.FILE, **stated):
        return importers.read(
            path,
            name=name,
            options=ImportOptions(**stated),
            benchmark="toy",
            tasks=tasks,
            called=called,
            as_of=AS_OF,
            limits=limits,
        )

    return call


@pytest.fixture
def outcomes(read):
    """{(task, trial): outcome, None where invalid} of a file of one agent."""

    def call(path, name=None, **stated):
        flat = read(path, name, **stated).flat
        assert len(flat.agents) == 1
        return {
            (flat.tasks[task], int(trial)): float(outcome) if valid else None
            for task, trial, outcome, valid in zip(
                flat.task, flat.trial, flat.outcome, flat.valid, strict=True
            )
        }

    return call


@pytest.fixture
def refusal(read):
    """What a refusal says: its message, and a line for each fault."""

    def call(path, name=None, **stated):
        with pytest.raises(Faulty) as refused:
            read(path, name, **stated)
        return "\n".join([str(refused.value), *map(str, refused.value.faults)])

    return call
