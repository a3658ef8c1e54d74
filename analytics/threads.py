"""One thread of BLAS.

The matrices are small: more threads wait for each other, ten times as long where cores are busy. To look
through all loaded libraries takes 1.5 ms, more than many a fit. They are looked through again only after an
import, as a library of BLAS is loaded by the module that uses it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
