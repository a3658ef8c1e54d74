"""What a test says of a refusal: its class, its code, and what its message names."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from analytics.errors import CoreError


@contextmanager
def refused(
    kind: type[CoreError], code: str, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[CoreError]]:
    with pytest.raises(kind, match=match) as raised:
        yield raised
    assert raised.value.code == code
