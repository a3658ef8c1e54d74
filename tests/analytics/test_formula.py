import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import CoreError
from analytics.reml.formula import ColumnUnknown, FactorRepeated, FormulaMalformed, TermRepeated, parse

REPEATABLE = settings(derandomize=True, deadline=None)
COLUMNS = ("a", "b", "c", "item", "prompt", "task name")


def names(text, columns=COLUMNS):
    return [term.name for term in parse(text, columns)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("  ", []),
        ("a", ["a"]),
        ("item + prompt + item:prompt", ["item", "prompt", "item:prompt"]),
        ("item+prompt:item", ["item", "prompt:item"]),
        (" item : prompt ", ["item:prompt"]),
        ("task name + a", ["task name", "a"]),
        ("a*b", ["a", "b", "a:b"]),
        ("a/b", ["a", "a:b"]),
        ("a/b/c", ["a", "a:b", "a:b:c"]),
        ("a*b*c", ["a", "b", "a:b", "c", "a:c", "b:c", "a:b:c"]),
        ("a:b/c", ["a:b", "a:b:c"]),
        ("a*b + a*c", ["a", "b", "a:b", "c", "a:c"]),
        ("a + a/b", ["a", "a:b"]),
        ("c + a:b:c", ["c", "a:b:c"]),
    ],
)
def test_a_text_is_a_list_of_terms_in_order_of_appearance(text, terms):
    assert names(text) == terms


@REPEATABLE
@given(st.permutations(["a", "b", "c"]), st.permutations(["a", "b", "c"]))
def test_the_order_of_factors_makes_no_other_term(one, other):
    first, second = parse(":".join(one), COLUMNS)[0], parse(":".join(other), COLUMNS)[0]
    assert first.factors == second.factors
    assert first.name == ":".join(one)
    with pytest.raises(TermRepeated, match="position 9"):
        parse(f"{':'.join(one)} + {':'.join(other)}", COLUMNS)


@pytest.mark.parametrize(
    ("text", "refusal", "message"),
    [
        ("a +", FormulaMalformed, r"position 4 of 'a \+': a column's name is missing"),
        ("+ a", FormulaMalformed, "position 1 of"),
        ("a + + b", FormulaMalformed, "position 5 of"),
        ("a:", FormulaMalformed, "position 3 of"),
        ("a: :b", FormulaMalformed, "position 4 of"),
        ("a**b", FormulaMalformed, "position 3 of"),
        ("a/", FormulaMalformed, "position 3 of"),
        (
            "a + judge",
            ColumnUnknown,
            "position 5 of 'a [+] judge': no column 'judge'; there are a, b, c, item",
        ),
        ("(1 | a)", ColumnUnknown, r"no column '\(1 \| a\)'"),
        ("a:b + b:a", TermRepeated, "position 7 of 'a:b [+] b:a': b:a is there already, as a:b"),
        ("a + b + a", TermRepeated, "position 9 of .*: a is there already$"),
        ("a*b + b", TermRepeated, "position 7"),
        ("a:a", FactorRepeated, "position 3 of 'a:a': a is crossed with itself"),
        ("b + a/a", FactorRepeated, "position 7 of"),
        ("a*a", FactorRepeated, "position 3"),
        ("a:b*b", FactorRepeated, "position 5"),
    ],
)
def test_a_malformed_text_is_refused_with_its_place(text, refusal, message):
    with pytest.raises(refusal, match=message):
        parse(text, COLUMNS)
    assert issubclass(refusal, CoreError)
