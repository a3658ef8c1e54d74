"""Count the house: lines, docstrings, modules, classes, functions and names of the product.

Product is each .py file that is neither test, perf, tool nor migration. `python tools/house.py` prints the
figures; `--names` also prints the class names that stand for several things, and in which modules.
"""

import ast
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("analytics", "selection", "leaderboard")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
FEW_LINES = 40
BUILT_IN = {"Exception", "APIException", "RuntimeError", "ValueError", "TypeError", "LookupError", "OSError"}


def product() -> Iterator[Path]:
    """Yield the files of the product."""
    yield from ROOT.glob("*.py")
    for package in PACKAGES:
        yield from (path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts)


def docstring_lines(tree: ast.AST) -> int:
    """Lines of all docstrings of a module."""
    first = (node.body[0] for node in ast.walk(tree) if isinstance(node, DOCUMENTED) and node.body)
    texts = (one.value for one in first if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    return sum((text.end_lineno or 0) - text.lineno + 1 for text in texts if isinstance(text.value, str))


def name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name, also of one that is called or subscripted."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def exceptions(classes: dict[str, set[str]]) -> set[str]:
    """Names of classes that descend from an exception."""
    known = set(BUILT_IN)
    while True:
        more = {name for name, bases in classes.items() if bases & known and name not in known}
        if not more:
            return known - BUILT_IN
        known |= more


def main() -> None:
    """Print the figures."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in product()}
    texts = {path: path.read_text(encoding="utf-8") for path in trees}
    lines = {path: text.count("\n") for path, text in texts.items()}
    classes: dict[str, set[str]] = {}
    places: dict[str, list[str]] = defaultdict(list)
    lengths, n_data, private = [], 0, []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = {name_of(base) for base in node.bases}
                classes[node.name] = classes.get(node.name, set()) | bases
                places[node.name].append(str(path.relative_to(ROOT)))
                is_data = any(name_of(one) == "dataclass" for one in node.decorator_list)
                n_data += is_data or "NamedTuple" in bases
            elif isinstance(node, FUNCTIONS):
                lengths.append((node.end_lineno or 0) - node.lineno + 1)
                if node.name.startswith("_") and not node.name.startswith("__"):
                    private.append((path, node.name))
    words = {path: Counter(re.findall(r"\w+", text)) for path, text in texts.items()}
    once = sum(words[path][name] == 2 for path, name in private)
    twice = {
        name: where for name, where in places.items() if len(where) > 1 and name not in ("Meta", "Command")
    }
    deciles = statistics.quantiles(lengths, n=10)
    print(f"product lines            {sum(lines.values()):,}")
    for package in PACKAGES:
        of = sum(n for path, n in lines.items() if path.is_relative_to(ROOT / package))
        print(f"  {package:<22} {of:,}")
    print(f"docstring lines          {sum(map(docstring_lines, trees.values())):,}")
    print(f"modules                  {len(trees)}")
    print(f"modules under {FEW_LINES} lines   {sum(n < FEW_LINES for n in lines.values())}")
    print(f"exception classes        {len(exceptions(classes))}")
    print(f"dataclasses, NamedTuples {n_data}")
    print(f"private functions once   {once} of {len(private)} ({once / len(private):.0%})")
    print(f"names for several things {len(twice)}")
    print(f"function length          median {statistics.median(lengths):g}, p90 {deciles[-1]:g}")
    print(f"the word told            {sum(count['told'] for count in words.values()):,}")
    if "--names" in sys.argv[1:]:
        for name, where in sorted(twice.items()):
            print(f"{name}: {', '.join(where)}")


if __name__ == "__main__":
    main()
