"""Names that a reader takes for one another."""

import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.flat_file.contents import look_alike
from analytics.names import alike, mark_in, skeleton, without_case


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Claude", "С1audе"),  # Cyrillic С and е, the digit 1
        ("GPT-4o", "GPT-40"),
        ("GPT-4", "GРТ-4"),  # Cyrillic Р and Т
        ("gpt-4", "GРТ-4"),
        ("o1", "ol"),
        ("v1.0", "vl.O"),
        ("gemini-2.5", "gernini-2.5"),
        ("OpenAI", "OpenAl"),
        ("clɑude", "Claude"),
        ("GPT-4", "GPT\u20114"),  # a hyphen that does not break
        ("Loop", "Ｌoop"),
        ("é-5", "E\u0301-5"),
        ("ΝΟΥΣ", "νους"),
        ("Straße", "STRASSE"),
        ("SWE-agent 1.0", "SWEagent 1-0"),
        ("Cheat", "Che at"),
        ("Cheat", "Cheat."),
        ("Cheat", "Chéat"),
        ("Cheat", "Cheatʼ"),
    ],
)
def test_names_that_look_the_same_are_alike(name, other):
    assert alike(name, other)
    assert alike(other, name)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *(("o1", "o3"), ("v1.0", "v1.1"), ("GPT-4", "GPT-5"), ("Loop 10", "Loop 11"), ("mini", "max")),
        *(("a", "b"), ("GPT-4.1", "GPT-41"), ("C", "C++"), ("Loop 1 1", "Loop 11"), ("++", "--")),
    ],
)
def test_names_that_differ_in_a_number_or_a_letter_are_not(name, other):
    assert not alike(name, other)


@given(st.text("0123456789.", min_size=1), st.text("0123456789.", min_size=1))
def test_numbers_are_alike_only_if_equal(name, other):
    assert alike(name, other) == (name == other)


@pytest.mark.parametrize(
    ("letter", "prototype"),
    [("m", "rn"), ("0", "O"), ("I", "l"), ("1", "l"), ("|", "l"), ("а", "a"), ("ſ", "f")],
)
def test_letters_have_the_prototypes_of_the_standard(letter, prototype):
    assert skeleton(letter) == without_case(prototype)


@given(st.text())
def test_a_name_is_like_itself_in_any_case(name):
    assert alike(name, name)
    assert alike(name, name.casefold())


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("● Solo", "●"),
        ("Solo ★ verified", "★"),
        ("Solo ✅", "✅"),
        ("ᴠᴇʀɪꜰɪᴇᴅ", "ᴠ"),
        ("𝐯erified", "𝐯"),
        ("Solo ⦁", "⦁"),
    ],
)
def test_a_name_that_may_pass_for_a_mark(name, sign):
    assert mark_in(name) == sign


@pytest.mark.parametrize(
    "name",
    [
        "GPT-4o^2 `x` |",
        "Größe 2² №5",
        "Ёж Ωmega",
        "モデル 語ー",
        "한국어",
        "עברית العربية",
        "हिन्दी ไทย",
        "Acme™ ®",
        "Loop → 7 × 8",
        "xʷməθkʷəy̓əm Lᵖ",
    ],
)
def test_a_name_of_any_alphabet_has_no_mark(name):
    assert mark_in(name) == ""


def test_no_two_real_names_are_alike(real_data):
    """All agents, scaffolds and models of one file: what an operator loads is refused or noted for none."""
    n_names = 0
    for path in sorted([*real_data.glob("*.csv.gz"), *real_data.glob("demo/*.csv.gz")]):
        table = pyarrow.csv.read_csv(path)
        for column in {"agent", "scaffold", "model"} & set(table.column_names):
            names = table[column].unique().cast("string").drop_null().to_pylist()
            n_names += len(names)
            assert not any(map(mark_in, names))
            seen = {}
            for name in names:
                assert seen.setdefault(skeleton(name), name) == name
            assert list(look_alike(names)) == []
    assert n_names > 400
