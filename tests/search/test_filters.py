"""Filters against Python's own evaluation of the same expression, and everything that is not one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.search.filters import parse

FIELDS = {"label": "text", "path": "text", "year": "number", "weight": "number", "good": "bool", "odd name": "text"}
ROWS = [
    {"label": "wren", "path": "a/1.jpg", "year": 2019, "weight": 9.5, "good": True, "odd name": "x"},
    {"label": "robin", "path": "a/100%.jpg", "year": 2021, "weight": -1.0, "good": False, "odd name": "y"},
    {"label": None, "path": "b/a_c.jpg", "year": None, "weight": None, "good": None, "odd name": None},
    {"label": "wren", "path": "b\\c.jpg", "year": 2020, "weight": 0.0, "good": True, "odd name": "x"},
]
TABLE = pyarrow.Table.from_pylist(ROWS)


def passing(text: str) -> list[int]:
    return np.flatnonzero(parse(text, FIELDS).rows(TABLE)).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('label == "wren"', [0, 3]),
        ("label != 'wren'", [1, 2]),
        ("'wren' == label", [0, 3]),
        ("year >= 2020", [1, 3]),
        ("2019 < year <= 2021", [1, 3]),
        ("year > -1 and weight < 0", [1]),
        ("year > 2019.5 or good", [0, 1, 3]),
        ("not good", [1, 2]),
        ("True", [0, 1, 2, 3]),
        ("good and False", []),
        ("good == True and not (year == 2020)", [0]),
        ("label in ('robin', 'auk')", [1]),
        ("year not in [2019, 2020]", [1, 2]),
        ("label is None", [2]),
        ("label is not None", [0, 1, 3]),
        ("label == None or year == 2019", [0, 2]),
        ("None != label", [0, 1, 3]),
        ("like(path, 'a/*')", [0, 1]),
        ("like(path, '*100%*')", [1]),
        ("like(path, 'b/a_c.jpg')", [2]),
        ("like(path, 'b/a?c.jpg')", [2]),
        (r"like(path, 'b\\*')", [3]),
        ("like(label, 'w*') and not like(path, 'a*')", [3]),
        ("weight < year", [0, 1, 3]),
        ('column("odd name") == "x"', [0, 3]),
        ("year < 99999999999999999999999", [0, 1, 3]),
        ("  label == 'wren'\n", [0, 3]),
    ],
)
def test_what_passes(text: str, rows: list[int]):
    assert passing(text) == rows


def comparisons() -> st.SearchStrategy[str]:
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    number = st.builds("{} {} {}".format, st.sampled_from(["year", "weight"]), order, st.integers(-3, 2022))
    text = st.builds("label {} {!r}".format, st.sampled_from(["==", "!="]), st.sampled_from(["wren", "robin", "auk"]))
    among = st.builds("year {} (2019, 2021)".format, st.sampled_from(["in", "not in"]))
    return number | text | among


EXPRESSIONS = st.recursive(
    comparisons(),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner) | st.builds("not {}".format, inner)
    ),
    max_leaves=6,
)


class Missing:
    """What an item does not have: equals nothing, is in no order."""

    def __lt__(self, other: Any) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
def test_means_what_python_means_by_it(text: str):
    expected = []
    for number, row in enumerate(ROWS):
        names = {name: Missing() if value is None else value for name, value in row.items()}
        if eval(text, {"__builtins__": {}}, names):
            expected.append(number)
    assert passing(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lable == 'x'", r"where must name columns of the index \(good, label, .*\), but it names lable"),
        ("year == '2019'", "where must compare what is alike, but year is a number and '2019' a text"),
        ("year in (1, 'x')", "where must compare what is alike, but year is a number and 'x' a text"),
        ("label", "where must compare label, which is neither true nor false by itself"),
        ("label ==", "where must be an expression such as"),
        ("", "where must be an expression such as"),
        ("1 == 1", "where must compare a column, but '1 == 1' compares two constants"),
        ("__import__('os').system('true')", "none of these"),
        ("label.upper() == 'X'", r"label\.upper\(\) is none of these"),
        ("(lambda: 1)() == year", "none of these"),
        ("year + 1 == 2", r"year \+ 1 is none of these"),
        ("year == 9**9**9", "none of these"),
        ("[x for x in label] == 'a'", "none of these"),
        ("label in other", "where must have a column in front of 'in'"),
        ("label in ()", "where must have a column in front of 'in'"),
        ("label in (path,)", "where must have values behind 'in', but it has the column path"),
        ("label is 'wren'", "where must use 'is' and 'is not' with a column and None alone"),
        ("label < None", "where must use 'is' and 'is not' with a column and None alone"),
        ("like(year, 'x')", "where must use like"),
        ("like(label)", "where must use like"),
        ("like(label, path)", "where must use like"),
        ("-label == 1", "where must have a number behind a sign, but it has label"),
        ("column(year) == 1", r"where must use column\(\"name\"\)"),
        ("not " * 100 + "good", "where must have at most 64 levels"),
        ("(" * 300 + "good" + ")" * 300, "where must be an expression such as"),
        ("good and " * 500 + "good", "where must have at most 4096 characters"),
        ("label == 'a\0b'", "where must be an expression such as"),
        ("year == 1j", "none of these"),
        ("year == ...", "none of these"),
    ],
)
def test_refusals_are_one_sentence(text: str, sentence: str):
    with pytest.raises(ValueError, match=sentence) as refused:
        parse(text, FIELDS)
    assert "\n" not in str(refused.value)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | st.text("abelyr01 ()[]{}'\"=<>!.,:+-*/%@and or not in like label year", max_size=40))
def test_anything_is_a_filter_or_a_sentence(text: str):
    reason = ""
    try:
        assert parse(text, FIELDS).rows(TABLE).shape == (4,)
    except ValueError as refused:
        reason = str(refused)
    assert not reason or reason.startswith("where must")


def test_only_texts_are_filters():
    with pytest.raises(TypeError, match="where must be a text, but it is a int"):
        parse(3, FIELDS)  # type: ignore[arg-type]


def test_columns_that_a_segment_has_not():
    table = pyarrow.table({"label": ["a", "b"], "year": pyarrow.nulls(2)})
    assert parse("weight != 3", FIELDS).rows(table).tolist() == [True, True]
    assert parse("year > 3", FIELDS).rows(table).tolist() == [False, False]
    assert parse("good", FIELDS).rows(table).tolist() == [False, False]
    assert parse("weight is None", FIELDS).rows(table).tolist() == [True, True]


def test_numbers_that_no_machine_holds_and_half_characters():
    assert passing(f"year < {10**400}") == [0, 1, 3]
    assert passing(f"year > {-(10**400)}") == [0, 1, 3]
    with pytest.raises(ValueError, match="where must have texts of whole characters"):
        parse(r"label == '\ud800'", FIELDS)
