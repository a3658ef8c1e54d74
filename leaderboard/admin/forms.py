"""Forms of the admin: each asks for a reason at its end."""

from typing import Any, ClassVar

from django import forms
from unfold.widgets import (
    UnfoldAdminEmailInputWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldAdminURLInputWidget,
    UnfoldBooleanWidget,
)

from leaderboard.accounts.models import User

WIDGETS = {
    forms.CharField: UnfoldAdminTextInputWidget,
    forms.EmailField: UnfoldAdminEmailInputWidget,
    forms.SlugField: UnfoldAdminTextInputWidget,
    forms.URLField: UnfoldAdminURLInputWidget,
    forms.ChoiceField: UnfoldAdminSelectWidget,
    forms.BooleanField: UnfoldBooleanWidget,
}


class LongText(forms.CharField):
    """A text of several lines."""

    widget = UnfoldAdminTextareaWidget


class ReasonForm(forms.Form):
    """What is asked before something is done to `row`; `by` is who asks."""

    use_required_attribute = True
    needs_file: ClassVar[bool] = False

    def __init__(self, *arguments: Any, row: Any, by: User, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.row, self.by = row, by
        self.prepare()
        self.fields["reason"] = LongText(
            label="Reason", help_text="Kept in the audit, with your name.", max_length=2_000
        )
        for name, field in self.fields.items():
            if made := WIDGETS.get(type(field)):
                field.widget = made(choices=field.choices) if hasattr(field, "choices") else made()
                field.widget.is_required = field.required
            field.widget.attrs |= {"aria-describedby": f"id_{name}_help"} if field.help_text else {}
            if isinstance(field, LongText):
                field.widget.attrs["rows"] = 2 if name == "reason" else 8

    def prepare(self) -> None:
        """Fill in choices and values that depend on the row."""
