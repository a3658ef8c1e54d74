import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import CoreError
from analytics.reml.formula import parse
from tests.refusals import refused

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
    with refused(CoreError, "term_repeated", match="position 9"):
        parse(f"{':'.join(one)} + {':'.join(other)}", COLUMNS)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("a +", "name_missing", r"position 4 of 'a \+': a column's name is missing"),
        ("+ a", "name_missing", "position 1 of"),
        ("a + + b", "name_missing", "position 5 of"),
        ("a:", "name_missing", "position 3 of"),
        ("a: :b", "name_missing", "position 4 of"),
        ("a**b", "name_missing", "position 3 of"),
        ("a/", "name_missing", "position 3 of"),
        (
            "a + judge",
            "column_unknown",
            "position 5 of 'a [+] judge': unknown column 'judge'. Columns: a, b, c, item",
        ),
        ("(1 | a)", "column_unknown", r"unknown column '\(1 \| a\)'"),
        ("a:b + b:a", "term_repeated", "position 7 of 'a:b [+] b:a': b:a is there already, as a:b"),
        ("a + b + a", "term_repeated", "position 9 of .*: a is there already$"),
        ("a*b + b", "term_repeated", "position 7"),
        ("a:a", "factor_repeated", "position 3 of 'a:a': a is crossed with itself"),
        ("b + a/a", "factor_repeated", "position 7 of"),
        ("a*a", "factor_repeated", "position 3"),
        ("a:b*b", "factor_repeated", "position 5"),
    ],
)
def test_a_malformed_text_is_refused_with_its_place(text, code, message):
    with refused(CoreError, code, match=message):
        parse(text, COLUMNS)
