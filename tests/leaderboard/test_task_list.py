"""A list of tasks is refused in words and in bounded memory, however much is wrong with it."""

import tracemalloc

import pytest

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.task_list import MAX_TASKS, read_tasks


def refused(tmp_path, text):
    path = tmp_path / "tasks.csv"
    path.write_text(text)
    with pytest.raises(Faulty) as error:
        read_tasks(path)
    return error.value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("name\n" + "a\n" * (MAX_TASKS + 1), "there are more than 100,000 tasks"),
        ('{"name": "a"}\n' * (MAX_TASKS + 1), "there are more than 100,000 tasks"),
        ("name," + ",".join(map(str, range(100_000))) + "\n" + "a\n" * 100, "there are more than 64 columns"),
    ],
)
def test_too_much_is_refused_at_once(tmp_path, text, rule):
    assert [fault.rule for fault in refused(tmp_path, text).faults] == [rule]


def test_all_faults_are_counted_and_the_first_held(tmp_path):
    text = "name,x,y\n" + "a,1,2\n" * 50_000
    tracemalloc.start()
    found = refused(tmp_path, text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.n_faults, len(found.faults)) == (149_999, 1_000)
    assert "149,999 faults" in str(found)
    assert found.faults[0].field == "x"
    assert peak < 20 << 20
