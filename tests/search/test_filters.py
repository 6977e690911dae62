"""Filters: one table of cases for Arrow and PostgreSQL, Python's own evaluation, and everything that is not a filter."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.search import Index
from likewise.search.columns import filterable_fields, kinds_of, make_table, number_rows
from likewise.search.conditions import to_arrow
from likewise.search.filters import parse
from likewise.testing import loop_over

ROWS: list[dict[str, Any]] = [
    {"label": "wren", "path": "a/1.jpg", "year": 2019, "weight": 9.5, "good": True, 'odd "name"': "x"},
    {"label": "robin", "path": "a/100%.jpg", "year": 2021, "weight": -1.0, "good": False, 'odd "name"': "y"},
    {"label": None, "path": "b/a_c.jpg", "year": None, "weight": nan, "good": None, 'odd "name"': None},
    {"label": "wren", "path": "b\\c.jpg", "year": 2020, "weight": 0.0, "good": True, 'odd "name"': "x"},
    {"label": "Zaunkönig", "path": "ü.jpg", "year": 2020, "weight": None, "good": None, 'odd "name"': ""},
]
METADATA = {name: [row[name] for row in ROWS] for name in ROWS[0] if name not in ("label", "path")}
TABLE = number_rows(make_table([row["path"] for row in ROWS], [row["label"] for row in ROWS], METADATA), np.arange(5))
FIELDS = filterable_fields(kinds_of(TABLE.schema))

CASES = [
    ('label == "wren"', [0, 3]),
    ("label != 'wren'", [1, 2, 4]),
    ("not label != 'wren'", [0, 3]),
    ("'wren' == label", [0, 3]),
    ("label < 'a'", [4]),
    ("label >= 'wren'", [0, 3]),
    ("year >= 2020", [1, 3, 4]),
    ("2019 < year <= 2021", [1, 3, 4]),
    ("not (year > 2019)", [0, 2]),
    ("year != 2020", [0, 1, 2]),
    ("year > -1 and weight < 0", [1]),
    ("year > 2019.5 or good", [0, 1, 3, 4]),
    ("year == 2020.0", [3, 4]),
    ("weight == 9.5", [0]),
    ("weight != 0", [0, 1, 2, 4]),  # NaN is a missing value, which differs from everything
    ("weight >= -1", [0, 1, 3]),  # and is neither less nor greater than anything
    ("weight is None", [2, 4]),
    ("weight == None", [2, 4]),
    ("not weight == weight", [2, 4]),
    ("weight < year", [0, 1, 3]),
    ("year in (2019, 2021.0)", [0, 1]),
    ("year not in [2019, 2020]", [1, 2]),
    ("year < 1e300", [0, 1, 3, 4]),
    ("year < 1e999 and year > -1e999", [0, 1, 3, 4]),
    ("year < 99999999999999999999999", [0, 1, 3, 4]),
    (f"year > {-(10**400)}", [0, 1, 3, 4]),
    ("good", [0, 3]),
    ("not good", [1, 2, 4]),
    ("good == True", [0, 3]),
    ("good != False", [0, 2, 3, 4]),
    ("good is not None", [0, 1, 3]),
    ("good and False", []),
    ("good == True and not (year == 2020)", [0]),
    ("True", [0, 1, 2, 3, 4]),
    ("label in ('robin', 'auk')", [1]),
    ("label not in ('robin', 'auk')", [0, 2, 3, 4]),
    ("label is None", [2]),
    ("None != label", [0, 1, 3, 4]),
    ("label == None or year == 2019", [0, 2]),
    ("label == 'Zaunkönig'", [4]),
    ("like(path, 'a/*')", [0, 1]),
    ("like(path, '*100%*')", [1]),
    ("like(path, 'b/a_c.jpg')", [2]),
    ("like(path, 'b/a?c.jpg')", [2]),
    ("like(path, '?.jpg')", [4]),
    (r"like(path, 'b\\*')", [3]),
    ("not like(label, 'w*')", [1, 2, 4]),
    ("""column('odd "name"') == "x" """, [0, 3]),
    ("""column('odd "name"') == '' """, [4]),
    ("id < 1 or id == 3", [0, 3]),
    ('label == "x\'; DROP TABLE birds; --"', []),
    ("label == '%s'", []),
    ("  label == 'wren'\n", [0, 3]),
]


def passing(text: str) -> list[int]:
    return sorted(TABLE.filter(to_arrow(parse(text, FIELDS))).column("id").to_pylist())


def test_both_printers_pass_the_same_rows(url: str, tmp_path: Path):
    """One table for both; the row with NaN is stored as one with a missing value."""
    for place in (tmp_path / "a.index", f"{url}#birds"):
        index = Index.create(place, dim=2)
        index.add(
            np.ones((5, 2)), [row["path"] for row in ROWS], labels=[row["label"] for row in ROWS], metadata=METADATA
        )
        assert index.column("weight") == [9.5, -1.0, None, 0.0, None]
        assert {text: index.matching(text).tolist() for text, _ in CASES} == dict(CASES)


def test_arrow_without_an_index():
    assert {text: passing(text) for text, _ in CASES} == dict(CASES)


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
    """A missing value: equals nothing, is in no order."""

    def __lt__(self, other: Any) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
def test_means_what_python_means_by_it(text: str):
    expected = []
    for number, row in enumerate(ROWS):
        names = {name: Missing() if value is None or value != value else value for name, value in row.items()}
        if eval(text, {"__builtins__": {}}, names):
            expected.append(number)
    assert passing(text) == expected


REFUSED = [
    ("lable == 'x'", r"where must name columns of the index \(good, id, label, .*\), but it names lable"),
    ("year == '2019'", "where must compare values of the same type, but year is a number and '2019' a text"),
    ("year in (1, 'x')", "where must compare values of the same type, but year is a number and 'x' a text"),
    ("year == nan", "but it names nan"),
    ("label", "where must compare label, which is not true or false"),
    ("label ==", "where must be an expression such as"),
    ("", "where must be an expression such as"),
    ("1 == 1", "where must compare a column, but '1 == 1' compares two constants"),
    ("__import__('os').system('true')", "not one of these"),
    ("label.upper() == 'X'", r"label\.upper\(\) is not one of these"),
    ("(lambda: 1)() == year", "not one of these"),
    ("year + 1 == 2", r"year \+ 1 is not one of these"),
    ("year == 9**9**9", "not one of these"),
    ("[x for x in label] == 'a'", "not one of these"),
    ("label in other", "where must have a column in front of 'in'"),
    ("label in ()", "where must have a column in front of 'in'"),
    ("label in (path,)", "where must have values behind 'in', but it has the column path"),
    ("label is 'wren'", "where must use 'is' and 'is not' with a column and None"),
    ("label < None", "where must use 'is' and 'is not' with a column and None"),
    ("like(year, 'x')", "where must use like"),
    ("like(label)", "where must use like"),
    ("like(label, path)", "where must use like"),
    ("-label == 1", "where must have a number behind a sign, but it has label"),
    ("column(year) == 1", r"where must use column\(\"name\"\)"),
    ("not " * 100 + "good", "where must have at most 64 levels"),
    ("(" * 300 + "good" + ")" * 300, "where must be an expression such as"),
    ("good and " * 500 + "good", "where must have at most 4096 characters"),
    ("label == 'a\0b'", "where must be an expression such as"),
    (r"label == '\0'", "where must have texts without lone surrogates"),
    (r"label == '\ud800'", "where must have texts without lone surrogates"),
    (r"like(label, '\ud800')", "where must have texts without lone surrogates"),
    ("year == 1j", "not one of these"),
    ("year == ...", "not one of these"),
]


@loop_over("text, sentence", REFUSED)
def test_refusals_are_one_sentence(text: str, sentence: str):
    with pytest.raises(ValueError, match=sentence) as refused:
        parse(text, FIELDS)
    assert "\n" not in str(refused.value)


def test_a_database_is_never_asked_what_is_refused(url: str):
    index = Index.create(f"{url}#birds", dim=2)
    index.add(np.ones((5, 2)), [row["path"] for row in ROWS], metadata=METADATA)
    for text, _ in REFUSED:
        with pytest.raises(ValueError, match="where must"):
            index.search(np.ones((1, 2)), where=text)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | st.text("abelyr01 ()[]{}'\"=<>!.,:+-*/%@and or not in like label year", max_size=40))
def test_anything_is_a_filter_or_a_sentence(text: str):
    reason = ""
    try:
        assert len(passing(text)) <= 5
    except ValueError as refused:
        reason = str(refused)
    assert not reason or reason.startswith("where must")


def test_only_texts_are_filters():
    with pytest.raises(TypeError, match="where must be a text, but it is a int"):
        parse(3, FIELDS)  # type: ignore[arg-type]
