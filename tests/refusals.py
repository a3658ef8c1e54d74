"""What a test says of a refusal: its class, its code, and what its message names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def refused(
    kind: type[Exception], code: str, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[Any]]:
    with pytest.raises(kind, match=match) as raised:
        yield raised
    assert raised.value.code == code
