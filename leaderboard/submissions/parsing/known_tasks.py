"""The tasks of a benchmark, and what is said of a name that is none of them."""

from collections.abc import Iterable

from rapidfuzz import process

N_EXPLAINED = 20  # unknown tasks for which near ones are looked for, which takes time
NEAR = 80  # of 100
NO_SUCH_TASK = "is not a task of this benchmark"


class KnownTasks:
    """Says of a name why it is no task, with the tasks near the first few such names; None: it is one."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self._explained: dict[str, str] = {}

    def __call__(self, name: str) -> str | None:
        if name in self.names:
            return None
        if name not in self._explained and len(self._explained) < N_EXPLAINED:
            self._explained[name] = NO_SUCH_TASK + self._near(name)
        return self._explained.get(name, NO_SUCH_TASK)

    def _near(self, name: str) -> str:
        matches = process.extract(name, self.names, limit=None, score_cutoff=NEAR)
        near = sorted((-score, match) for match, score, _ in matches)[:3]
        return f"; near it are {', '.join(repr(match) for _, match in near)}" if near else ""
