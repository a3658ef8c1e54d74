"""Commands of ``python -m selection``, run in this process."""

import json

import pytest

from selection.cli import main


@pytest.fixture
def answer(capsys):
    """Run a command under --json and return its object, parsed so that no NaN passes."""

    def run(*arguments):
        assert main([*map(str, arguments), "--json"]) == 0
        out = capsys.readouterr().out
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} in the JSON"))

    return run


@pytest.fixture
def refusal(capsys):
    """Run a command that must refuse: exit 2, one line on stderr, nothing on stdout."""

    def run(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as ended:
            code = ended.code
        captured = capsys.readouterr()
        assert (code, captured.out, captured.err.count("\n")) == (2, "", 1), captured.err
        assert captured.err.startswith("python -m selection")
        return captured.err

    return run
