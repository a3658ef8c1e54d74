"""Progress on a stderr that is no terminal."""

import time

from analytics import programs


def test_the_last_line_says_where_the_work_ended(capsys, monkeypatch):
    monkeypatch.setattr(programs, "EVERY", 0.01)
    with programs.progress_bar("Replaying", "steps") as show:
        show(1, 3)
        time.sleep(0.2)
        show(3, 3)
        monkeypatch.setattr(programs, "EVERY", 60)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Replaying: 1 of 3 steps"
    assert lines[-1] == "Replaying: 3 of 3 steps"


def test_short_work_is_silent(capsys):
    with programs.progress_bar("Replaying", "steps") as show:
        show(3, 3)
    assert capsys.readouterr().err == ""
