"""The notebooks of docs/examples: each runs from its folder, and is kept without what it printed."""

import json
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PLOTS = {"plots.ipynb": 4}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_holds_no_output(path, monkeypatch):
    mpl.use("Agg")
    pyplot.close("all")
    monkeypatch.chdir(FOLDER)
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], path.stat().st_size < 20_000) == (4, True)
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            exec(compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec"), names)
    drawn = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(drawn) == PLOTS[path.name]
    for figure in drawn:
        figure.draw_without_rendering()
        assert figure.axes[0].has_data()
    pyplot.close("all")


def test_there_is_a_notebook():
    assert [path.name for path in NOTEBOOKS] == list(PLOTS)
