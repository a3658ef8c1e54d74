"""What scikit-learn may use is on the page on the core from Python; `test_docs` runs what it shows."""

from pathlib import Path

from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from selection import estimators

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "library.md").read_text()


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
