"""`python -m analytics variance FILE` and `dstudy FILE` give numbers that the service gives of that file."""

import json

import numpy as np
import pytest
from django.core.management import call_command

from analytics.cli import main
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import measure_variance
from leaderboard.studies.kinds import project_error
from leaderboard.studies.models import VarianceStudy
from tests.toys import AS_OF, load_text, rows_text

pytestmark = pytest.mark.django_db
COMPARED = (
    "components",
    "fixed",
    "criterion",
    "facets",
    "projections",
    "advice",
    "groups",
    "levels",
    "n_rows",
)


def varied(*, n_agents=8, n_tasks=24, settings=((None, None),), n_groups=0, runs=(None,), seed=3):
    """Trials under each setting (prompt, judge) and run; one agent lacks tasks, some trials are void."""
    rng = np.random.default_rng(seed)
    able, hard = rng.normal(0, 1, n_agents), rng.normal(0, 1, n_tasks)
    rows = []
    for i, a in enumerate(able):
        for j, b in enumerate(hard[: n_tasks // 2] if i == 0 else hard):
            for number, (prompt, judge) in enumerate(settings):
                for run in runs:
                    for trial in (1, 2):
                        chance = 1 / (1 + np.exp(b - a - 0.2 * number))
                        row = {"agent": f"a{i}", "task": f"t{j:02d}", "trial": 2 * number + trial}
                        row["outcome"] = int(rng.random() < chance)
                        row["valid"] = int(rng.random() > 0.03)
                        named = {"prompt_variant": prompt, "judge": judge, "run": run}
                        row |= {name: text for name, text in named.items() if text}
                        row |= {"group": f"g{j % n_groups}"} if n_groups else {}
                        rows.append(row)
    return rows_text(rows)


FILES = {
    "repeats": varied(),
    "groups": varied(n_groups=12),
    "prompts and judges": varied(settings=[(p, j) for p in ("p1", "p2") for j in ("j1", "j2", "j3")]),
    "runs": varied(runs=("r1", "r2")),
}


@pytest.fixture(params=FILES, ids=lambda name: name)
def file(request, tmp_path):
    path = tmp_path / "toy.csv"
    path.write_text(FILES[request.param])
    return path


def printed(capsys, *arguments):
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def assert_same(mine, theirs):
    """Equal but for the last digits, which the order of the rows moves."""
    if isinstance(theirs, dict):
        assert set(mine) == set(theirs)
        for name, value in theirs.items():
            assert_same(mine[name], value)
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
    else:
        assert mine == (pytest.approx(theirs, rel=1e-6, abs=1e-9) if isinstance(theirs, float) else theirs)


def test_the_model_of_a_board_gives_the_numbers_of_the_service(file, capsys):
    load_text(file.read_text())
    call_command("variance", "toy")
    stored = VarianceStudy.objects.get().result
    assert stored["available"], stored["reason"]
    mine = printed(capsys, "variance", file)
    for name in COMPARED:
        assert_same(mine[name], stored[name])
    assert mine["n_rows"] == stored["n_rows"]
    assert mine["model"].startswith("agent + task + agent:task")


def test_a_projection_goes_on_from_the_file_or_from_what_is_stored(file, capsys, client, tmp_path):
    load_text(file.read_text())
    study, _ = measure_variance(benchmark=Benchmark.objects.get(slug="toy"), as_of=AS_OF)
    for design, estimand in (({}, "domain"), ({"N": 12, "R": 4}, "finite")):
        theirs = project_error(study=study, design=design, estimand=estimand, sensitivity="exclude")
        del theirs["data_version"]
        text = ",".join(f"{letter}={n}" for letter, n in design.items())
        options = ["--estimand", estimand, *(["--design", text] if text else [])]
        assert_same(printed(capsys, "dstudy", file, *options), theirs)
        answer = client.get(f"/api/v1/benchmarks/toy/studies/variance/{study.pk}")
        path = tmp_path / "study.json"
        assert answer.status_code == 200, answer.content
        path.write_bytes(answer.content)
        assert_same(printed(capsys, "dstudy", path, *options), theirs)
    path.write_text(json.dumps(printed(capsys, "variance", file)))
    assert_same(printed(capsys, "dstudy", path, *options), theirs)
