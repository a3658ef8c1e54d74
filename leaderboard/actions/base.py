"""What an operator can do to a row: one declaration, from which the admin's page and the command follow."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from django import forms

from analytics.names import first_names
from leaderboard.accounts.models import User
from leaderboard.errors import Faulty

if TYPE_CHECKING:  # every process imports this module, few compare
    from leaderboard.operations.previews import Foreseen

N_LINES, N_ROWS = 50, 8  # kinds of faults shown, and other rows of one; the number of all always is


class LongText(forms.CharField):
    widget = forms.Textarea


class ReasonForm(forms.Form):
    """What is asked before something is done to `row`; `by` is who asks."""

    use_required_attribute = True
    needs_file: ClassVar[bool] = False
    advanced: ClassVar[Collection[str]] = ()

    def __init__(self, *arguments: Any, row: Any, by: User, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.row, self.by = row, by
        self.prepare()
        self.fields["reason"] = LongText(
            label="Reason", help_text="Kept in the audit, with your name.", max_length=2_000
        )

    @property
    def field_groups(self) -> list[tuple[bool, list[Any]]]:
        """The fields that are seen, one after the other, by whether they are advanced."""
        by_kind = groupby(self.visible_fields(), lambda field: field.name in self.advanced)
        return [(is_advanced, list(fields)) for is_advanced, fields in by_kind]

    def prepare(self) -> None:
        """Fill in choices and values that depend on the row."""


@dataclass(frozen=True)
class ActionRequest:
    """Who asks for what, of which row, why and when; `by` is None at the command line."""

    row: Any
    by: User | None
    cleaned_data: dict[str, Any]
    as_of: datetime

    @property
    def reason(self) -> str:
        return str(self.cleaned_data["reason"])

    @property
    def decision(self) -> dict[str, Any]:
        """What every service that decides something is told: by whom, why and when."""
        return {"by": self.by, "reason": self.reason, "as_of": self.as_of}


@dataclass(frozen=True)
class ActionResult:
    """What was done. A `secret` is shown once; `row` is where to look next."""

    text: str
    secret: str = ""
    row: Any = None


Perform = Callable[[ActionRequest], ActionResult]


class Preview(NamedTuple):
    """What would change, a sentence each; what is carried to the confirmation; and who would move."""

    sentences: list[str]
    carried: Mapping[str, str] = MappingProxyType({})
    foreseen: "Foreseen | None" = None


@dataclass(frozen=True)
class Action:
    """One thing to do: `words` says what it does, `perform` does it by a service.

    `preview` says beforehand what would change. `is_open` says for which rows it is offered; the service
    refuses by itself.
    """

    name: str
    label: str
    words: str
    perform: Perform
    form: type[ReasonForm] = ReasonForm
    preview: Callable[[ActionRequest], Preview] | None = None
    is_open: Callable[[Any], bool] = lambda row: True
    staff_only: bool = False
    is_dangerous: bool = False
    moves_board: bool = False  # which follows by itself where a scheduler runs

    @property
    def has_preview(self) -> bool:
        return self.preview is not None

    def offered_to(self, user: User, row: Any) -> bool:
        return (user.is_staff or not self.staff_only) and self.is_open(row)


def action(name: str, label: str, words: str, **more: Any) -> Callable[[Perform], Action]:
    return lambda perform: Action(name, label, words, perform, **more)


def fault_lines(faulty: Faulty) -> list[str]:
    """A line for what is wrong in one way, with the other rows where it is."""
    alike = defaultdict[Any, list[Any]](list)
    for fault in faulty.faults:
        alike[replace(fault, row=None)].append(fault)
    shown = list(alike.values())[:N_LINES]
    lines = []
    for first, *others in shown:
        rows = [f"{other.row}" for other in others if other.row is not None]
        also = f" (also in row{'s' * (len(rows) > 1)} {first_names(rows, N_ROWS)})" if rows else ""
        lines.append(f"{first}{also}")
    if n_more := faulty.n_faults - sum(map(len, shown)):
        lines.append(f"… and {n_more:,} more ({faulty.n_faults:,} in all)")
    return lines
