"""Refuse names that the house does not use: a participle by itself, and the terms that others replaced.

`python tools/words.py` prints file, line and name of each, and ends with 1 if there is any; `make lint` calls
it.
The glossary is in docs/README.md.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("analytics", "selection", "leaderboard")
PARTICIPLES = {
    "asked",
    "beside",
    "doing",
    "given",
    "held",
    "kept",
    "placed",
    "said",
    "spared",
    "stated",
    "told",
}
REPLACED = {
    "chosen_for": "adaptive_reason",
    "entrant": "compare_to",
    "own_parts": "receipt",
    "pacing": "rate_limits",
    "run_again": "resubmitted",
    "tries": "failed_attempts",
    "waking": "notify",
}
PREFIXES = {"MOST_": "MAX_", "FEWEST_": "MIN_", "settle_": "get_or_compute_"}
STORED = {  # fields of tables and of the API, which keep their names
    "asked": "tasks that a delivery was asked for",
    "told": "what a job or a check says",
}
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each name that a module gives, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, NAMED):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def why_not(name: str) -> str:
    """Say what is wrong with a name; empty where nothing is."""
    word = name.strip("_").lower()
    if name not in STORED and word in PARTICIPLES:
        return "a participle by itself says nothing of what it holds"
    if word in REPLACED:
        return f"called {REPLACED[word]} here"
    prefix = next((one for one in PREFIXES if name.startswith(one)), "")
    return f"begins with {PREFIXES[prefix]} here" if prefix else ""


def main() -> int:
    """Print what is refused."""
    found = 0
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        if "migrations" in path.parts:
            continue
        module = [(1, path.stem)] if re.fullmatch(r"\w+", path.stem) else []
        for line, name in [*module, *names(ast.parse(path.read_text(encoding="utf-8")))]:
            if why := why_not(name):
                print(f"{path.relative_to(ROOT)}:{line}: {name}: {why}")
                found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
