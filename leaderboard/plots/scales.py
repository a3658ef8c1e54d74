"""From values to places on a drawing, and the round values that an axis names."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, log10


@dataclass(frozen=True)
class LinearScale:
    """From values, `lo` to `hi`, to places on the drawing, `start` to `end`; linear, or by the logarithm."""

    lo: float
    hi: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        lo, hi, value = (log10(v) if self.log else v for v in (self.lo, self.hi, value))
        share = (value - lo) / (hi - lo) if hi > lo else 0.5
        return round(self.start + share * (self.end - self.start), 2)

    def clipped(self, value: float) -> float:
        """The place of a value, or the end of the scale that it lies beyond."""
        return self(min(max(value, self.lo), self.hi))


def ticks_125(lo: float, hi: float, n: int = 5) -> list[float]:
    """About `n` round values from `lo` to `hi`, one, two or five times a power of ten apart."""
    if hi <= lo:
        return [lo]
    rough = (hi - lo) / n
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = ceil(lo / step - 1e-9)
    return [round(i * step, 12) for i in range(first, floor(hi / step + 1e-9) + 1)]


def ticks_13(lo: float, hi: float) -> list[float]:
    """One and three times each power of ten, from `lo` to `hi`; both positive."""
    powers = range(floor(log10(lo)), ceil(log10(hi)) + 1)
    return [v for p in powers for v in (10.0**p, 3 * 10.0**p) if lo * (1 - 1e-9) <= v <= hi * (1 + 1e-9)]


def month_ticks(first: date, last: date, most: int = 7) -> list[date]:
    """First days of months, one to twelve months apart, at most `most` of them."""
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return next((days for days in _every_few(months, first, last) if len(days) <= most), [])


def day_ticks(lo: float, hi: float, most: int = 7) -> list[tuple[float, str]]:
    """Between two days as ordinals: first days of months, or days where these are too few; in words too."""
    first, last = date.fromordinal(floor(lo)), date.fromordinal(floor(hi))
    months = month_ticks(first, last, most)
    if len(months) > 1:
        return [(float(day.toordinal()), f"{day:%Y-%m}") for day in months]
    days = [day for day in ticks_125(ceil(lo), floor(hi), most) if day == int(day) and lo <= day <= hi]
    return [(day, date.fromordinal(int(day)).isoformat()) for day in days or [lo]]


def _every_few(months: range, first: date, last: date) -> Iterator[list[date]]:
    for step in (1, 2, 3, 6, 12, 24, 60, 120):
        every = [date(m // 12, m % 12 + 1, 1) for m in months if m % step == 0]
        yield [day for day in every if first <= day <= last]
