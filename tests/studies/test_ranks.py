"""The tournament that the thesis prints: table 11 follows from tables 6 to 8, but for three numbers."""

from __future__ import annotations

from likewise.protocols import tournament
from studies.published import disagreements, printed, published


def test_table_11_of_the_thesis():
    """Total, average and sample deviation as printed, but for the three numbers that do not follow from tables 6 to 8."""
    found = tournament(published("thesis", table=(6, 7, 8)))
    assert len(found.experiments) == 12
    expected = {}
    for number in printed("thesis", table=11):
        expected.setdefault(number.method, []).append(number.printed)
    expected["SoftTriple"][1] = "3.17"  # printed 3.16: cut off
    expected["LiftedStructure"][2] = "1.88"  # printed 1.89
    expected["Triplet"][1] = "8.58"  # printed 8.85
    assert [each.method for each in found.standings] == list(expected)
    for each in found.standings:
        total, average, deviation = expected[each.method]
        assert each.total == int(total)
        assert f"{each.average:.2f}" == f"{float(average):.2f}"
        assert f"{each.deviation:.2f}" == f"{float(deviation):.2f}"
        assert each.complete


def test_the_thesis_has_no_ties():
    """So its tables do not say which rule it had for them, and both give the same."""
    rows = published("thesis", table=(6, 7, 8))
    one, other = tournament(rows), tournament(rows, ties="min")
    assert one.standings == other.standings


def test_where_table_11_is_wrong():
    found = disagreements(tournament(published("thesis", table=(6, 7, 8))), printed("thesis", table=11))
    assert [(each.method, each.metric, each.kind) for each in found] == [
        ("SoftTriple", "average rank", "cut off"),
        ("LiftedStructure", "deviation of rank", "wrong"),
        ("Triplet", "average rank", "wrong"),
    ]
    assert {(each.method, each.metric) for each in found} == {
        (number.method, number.metric) for number in printed("thesis", table=11) if number.flag
    }


def test_no_whole_ranks_give_the_printed_deviation_of_lifted_structure():
    """Twelve whole numbers that sum to 54 have a whole sum of squares S, and a variance of (S - 243) / 11."""
    possible = {round(((squares - 243) / 11) ** 0.5, 2) for squares in range(243, 1201)}
    assert 1.88 in possible
    assert 1.89 not in possible
