"""What a program does without that a library must not: it imports no pandas, unless it reads a table by it.

pyarrow imports pandas, where it is installed, only to ask of a list or an array whether it is one of its own:
a second of a short command, and 60 MB of every web worker, for nothing.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this program uses no pandas", name=name)


def use_pandas() -> None:
    """Hide pandas no longer: this command reads by it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _WithoutPandas)]


def use_no_pandas() -> None:
    """Hide pandas from this process, unless it is imported already."""
    sys.meta_path.insert(0, _WithoutPandas())
