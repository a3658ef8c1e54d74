"""`make soak` in small: every reader takes its samples, and a few seconds of each part."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.soak import load
from tests.soak.changed import inputs
from tests.soak.faults import FAULTS
from tests.soak.fuzz import HAS_ATHERIS, Counting, fuzz
from tests.soak.memory import slope
from tests.soak.parsers import READERS
from tests.soak.traffic import OK

FEW = 15


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_its_samples_and_refuses_by_name(name):
    reader = READERS[name]
    for sample in reader.samples:
        reader.read(sample)
    counting = Counting(reader)

    @settings(
        max_examples=FEW,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(reader))
    def holds(data):
        counting(data)

    holds()
    assert counting.n >= FEW


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["atheris", "hypothesis"] if HAS_ATHERIS else ["hypothesis"])
def test_a_reader_is_fuzzed_in_a_process_of_its_own(engine):
    found = fuzz("hal", 2, engine)
    assert found.failure == ""
    assert found.n_inputs > 0
    assert 0 < found.peak_mib < 2048


@pytest.mark.slow
def test_a_failure_of_a_reader_is_told(tmp_path):
    found = fuzz("no such reader", 1, "hypothesis")
    assert "KeyError: 'no such reader'" in found.failure


@pytest.mark.slow
@pytest.mark.parametrize("troubled", [True, False])
def test_nothing_is_lost_under_load(troubled):
    found = load.Found()
    told = list(load.lines(found, 6, troubled=troubled, fault_every=1.0))
    print("", *(line for line, _ in told), sep="\n")
    assert not [line for line, is_bad in told if is_bad]
    assert found.ledger.n(OK) > 0
    assert found.n_accepted > 0
    assert set(found.done) == (set(FAULTS) if troubled else set())


def test_the_slope_of_memory():
    line = [(i / 10, 100 + 3 * i / 10 + (-1) ** i) for i in range(200)]
    found = slope(line)
    assert found.per_minute == pytest.approx(3, abs=0.05)
    assert 0 < found.error < 0.05
    assert found.peak == pytest.approx(100 + 3 * 19.8 + 1)
    assert found.late == pytest.approx(3, abs=0.2)
    assert slope([(i / 10, min(i, 90)) for i in range(200)]).late == pytest.approx(0, abs=1e-9)
