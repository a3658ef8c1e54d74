"""The house: every arrow points down."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps

ORDER = ("accounts", "catalog", "submissions", "studies", "boards", "operations")
ROOT = Path(__file__).resolve().parents[2]


def test_import_contracts_hold():
    linted = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert linted.returncode == 0, linted.stdout


CORE = {"analytics", "selection"}
MAY_ASK_THE_CORE = ("leaderboard.studies.", "leaderboard.submissions.parsing.")


def core_imports(source):
    """The modules of the core that a module imports, wherever the line stands in it."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            named.add(node.module)
    return {name for name in named if name.split(".")[0] in CORE}


def test_only_studies_and_the_reader_of_files_ask_the_core():
    """But for which names are alike, which is one rule everywhere."""
    asking = {}
    for path in (ROOT / "leaderboard").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if found := core_imports(path.read_text()) - {"analytics.names"}:
            asking[module] = found
    assert {name for name in asking if not name.startswith(MAY_ASK_THE_CORE)} == set()
    of_files = [found for name, found in asking.items() if name.startswith(MAY_ASK_THE_CORE[1])]
    assert set().union(*of_files) == {"analytics.flat_file", "analytics.tables"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def late():\n    from selection.bands import mid_range", {"selection.bands"}),
        ("import analytics", {"analytics"}),
        ("from leaderboard.studies.answers import Line", set()),
    ],
)
def test_who_asks_the_core_is_seen(source, found):
    assert core_imports(source) == found


REDUCTIONS = {
    *("sum", "mean", "std", "var", "median", "quantile", "percentile", "average", "prod", "dot", "cumsum"),
    *("nansum", "nanmean", "nanstd", "nanvar", "sqrt", "log", "exp", "einsum", "bincount", "corrcoef"),
}
FORMULAS = (ast.Mult, ast.Div, ast.FloorDiv, ast.Pow, ast.MatMult, ast.Sub, ast.Mod)


def formulas(source):
    """Lines on which something is computed: arithmetic but for addition, and reductions of arrays."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, FORMULAS))
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in REDUCTIONS
        )
    )


def test_studies_hold_no_formula():
    files = list((ROOT / "leaderboard" / "studies").glob("*.py"))
    assert len(files) > 10
    assert {path.name: lines for path in files if (lines := formulas(path.read_text()))} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = a * b", [1]),
        ("y = 0\ny -= x", [2]),
        ("np.mean(x)\nx.sum(axis=1)", [1, 2]),
        ("names + more\nfirst | second\nx[order]", []),
    ],
)
def test_a_formula_is_seen(source, lines):
    assert formulas(source) == lines


def test_what_faces_know_of_the_answer_imports_nothing_heavy():
    code = (
        "import sys, leaderboard.studies.answers;"
        "heavy = {'numpy', 'scipy', 'pandas', 'pyarrow', 'sklearn', 'joblib'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


@pytest.mark.parametrize("label", ORDER)
def test_no_foreign_key_points_up(label):
    below = {"auth", "contenttypes", "pghistory", *ORDER[: ORDER.index(label) + 1]}
    for model in apps.get_app_config(label).get_models():
        for field in model._meta.get_fields():
            if field.is_relation and not field.auto_created:
                assert field.related_model._meta.app_label in below, f"{model.__name__}.{field.name}"


def test_commands_start_without_what_costs_seconds():
    """`manage.py` answers in under a second only if these are imported where they are needed."""
    code = (
        "import sys, django; django.setup();"
        "from django.core.management import get_commands, load_command_class;"
        "[load_command_class(app, name) for name, app in get_commands().items() if 'leaderboard' in app];"
        "from django.urls import get_resolver; get_resolver().url_patterns;"
        "slow = {'scipy.stats', 'sklearn', 'pandas', 'pyarrow.parquet', 'altair'};"
        "print(sorted(slow & sys.modules.keys()))"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "leaderboard.settings", "PATH": "", "HOME": "/nonexistent"}
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment, check=True
    )
    assert printed.stdout.strip() == "[]"
