"""How units of work are spread: over processes of this machine, or by what the caller brings.

A `Spread` takes a function and the arguments of each unit, and gives the answers in the order of the units,
as they come. The function and the arguments travel by pickle; the numbers do not depend on the spread.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Spread = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]


def processes(n_jobs: int) -> Spread:
    """Spread over processes of this machine, at most one for each processor, with one BLAS thread each.

    Each is sent what its unit needs; nothing is mapped into files, which a kill would leave behind. Workers
    are ended with the last answer: idle ones would keep whatever the caller does next from ending.
    """

    def spread(function: Callable[..., Any], units: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        from joblib import Parallel, cpu_count, delayed, parallel_config
        from joblib.externals.loky import get_reusable_executor

        try:
            with parallel_config(backend="loky", inner_max_num_threads=1, max_nbytes=None):
                yield from Parallel(n_jobs=min(n_jobs, cpu_count()), return_as="generator")(
                    delayed(function)(*unit) for unit in units
                )
        finally:
            get_reusable_executor().shutdown(kill_workers=True)

    return spread
