"""The page on the core from Python: what it shows runs, and what is public is on it."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from selection import estimators

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "library.md").read_text()


@pytest.fixture
def in_a_folder_with_outcomes(tmp_path, monkeypatch):
    """20 agents on 40 tasks, one a day."""
    rng = np.random.default_rng(0)
    distance = np.linspace(-1.5, 1.5, 20)[:, None] - np.linspace(-1.5, 1.5, 40)
    rows = [
        f"B,a{i:02d},S{i % 2},M{i},2026-01-{i + 1:02d},t{j:02d},1,{int(rng.random() < p)}"
        for (i, j), p in np.ndenumerate(1 / (1 + np.exp(-distance)))
    ]
    head = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"
    # pandas tells compression by the name; the name on the page is for real files.
    (tmp_path / "outcomes.csv").write_text("\n".join([head, *rows]) + "\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("in_a_folder_with_outcomes")
def test_what_the_page_shows_runs(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block.replace("outcomes.csv.gz", "outcomes.csv"), names)
    assert 'outcom: no column is called so; is it "outcome"?' in capsys.readouterr().out
    assert (len(names["found"]["test_score"]), len(names["later"]["test_score"])) == (20, 10)
    assert names["band"].suited


def test_every_estimator_and_splitter_is_on_the_page():
    public = [
        name
        for name, value in vars(estimators).items()
        if isinstance(value, type)
        and issubclass(value, BaseEstimator | BaseCrossValidator)
        and value.__module__ == estimators.__name__
        and not name.startswith("_")
    ]
    assert len(public) == 8
    assert all(f"`{name}" in PAGE for name in public)
