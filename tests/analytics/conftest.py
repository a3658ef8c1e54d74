"""Commands as tests call them; a module may name its command as COMMAND."""

import json

import pytest

from analytics.cli import main
from analytics.research.cli import main as research

RESEARCH = ("adaptive", "gaming", "next", "pairwise", "panels", "surrogate", "turns")


@pytest.fixture
def exit_code(request):
    """Run a command; return its exit code."""

    def run(*arguments):
        words = [*getattr(request.module, "COMMAND", ()), *map(str, arguments)]
        try:
            return (research if words[0] in RESEARCH else main)(words)
        except SystemExit as ended:
            return ended.code

    return run


@pytest.fixture
def answer(exit_code, capsys):
    """Run a command under --json and return its object, parsed so that no NaN passes."""

    def run(*arguments):
        assert exit_code(*arguments, "--json") == 0
        out = capsys.readouterr().out
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} in the JSON"))

    return run


@pytest.fixture
def text(exit_code, capsys):
    """Run a command and return what it prints."""

    def run(*arguments):
        assert exit_code(*arguments) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def refusal(exit_code, capsys):
    """Run a command that must refuse: exit 2, one line on stderr, nothing on stdout."""

    def run(*arguments):
        code = exit_code(*arguments)
        captured = capsys.readouterr()
        assert (code, captured.out, captured.err.count("\n")) == (2, "", 1), captured.err
        assert captured.err.startswith("python -m analytics")
        return captured.err

    return run
