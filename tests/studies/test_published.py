"""Published tables: their shape, what can be checked inside them, and that what is wrong in them is flagged."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

import likewise.data
import likewise.losses
import likewise.miners
from likewise.formula import hyperparameters
from likewise.protocols.thesis_grid import TABLE_15, thesis_best, thesis_space
from likewise.trunks.registry import TRUNKS
from studies.published import DATA, SOURCES, impossible, method_of, methods, printed, published, remarks

TEN = ["Contrastive", "Triplet", "LiftedStructure", "NPair", "ProxyNCA"]
TEN += ["Margin", "ArcFace", "MultiSimilarity", "SoftTriple", "ProxyAnchor"]


@pytest.mark.parametrize(
    ("table", "data", "trunk"),
    [
        (6, "CUB200", "resnet50"),
        (7, "CUB200", "bninception"),
        (8, "CUB200", "googlenet"),
        (9, "Cars196", "bninception"),
        (10, "SOP", "bninception"),
        (20, "Cars196", "resnet50"),
        (21, "Cars196", "googlenet"),
    ],
)
def test_grids_of_the_thesis_are_whole(table, data, trunk):
    rows = published("thesis", table=table)
    assert {(row["data"], row["trunk"]) for row in rows} == {(data, trunk)}
    assert [
        (row["method"], row["dim"]) for row in sorted(rows, key=lambda row: (row["dim"], TEN.index(row["method"])))
    ] == [(method, dim) for dim in (64, 128, 512, 1024) for method in TEN]
    depths = (1, 10, 100, 1000) if data == "SOP" else (1, 2, 4, 8)
    assert all({name for name in row if name.startswith("test ")} == {f"test R@{k}" for k in depths} for row in rows)


@pytest.mark.parametrize(
    ("source", "table", "numbers"),
    [
        *(("thesis", table, 160) for table in (6, 7, 8, 9, 10, 20, 21)),
        *(("thesis", table, 44) for table in (17, 18, 19)),
        *(("thesis", table, count) for table, count in ((11, 30), (12, 3), (13, 20), (14, 8), (16, 3))),
        *(("reality-check", data, 90) for data in ("CUB200", "Cars196", "SOP")),
        ("unified-view", 1, 7 * 4),
        ("unified-view", 2, 8 * 12 - 3 * 4 - 2),  # three rows end at R@8, Margin at R@16
        ("unified-view", 3, 7 * 10 - 7 - 6 - 9),  # Clustering, Margin and Proxy-NCA have dashes
        ("rolinek-2020", 2, 17 * 4 - 1 - 3),
        ("rolinek-2020", 3, 18 * 4),
    ],
)
def test_every_table_has_all_its_numbers(source, table, numbers):
    assert len(printed(source, table=table)) == numbers


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # read off the page, first and last cells and some in the middle
        (("thesis", 6, "Contrastive", 64, "R@1"), "60.28"),
        (("thesis", 6, "ProxyAnchor", 1024, "R@8"), "92.69"),
        (("thesis", 7, "SoftTriple", 512, "R@1"), "66.76"),
        (("thesis", 8, "NPair", 128, "R@4"), "72.99"),
        (("thesis", 9, "Margin", 1024, "R@2"), "87.60"),
        (("thesis", 10, "ArcFace", 128, "R@10"), "64.56"),
        (("thesis", 19, "OurLoss", 512, "R@1000"), "98.99"),
        (("thesis", 20, "MultiSimilarity", 512, "R@1"), "89.21"),
        (("thesis", 21, "ProxyAnchor", 1024, "R@8"), "97.04"),
        (("reality-check", "CUB200", "N. Softmax", 128, "MAP@R"), "20.96"),
        (("reality-check", "Cars196", "MS", 512, "MAP@R"), "28.07"),
        (("reality-check", "SOP", "SoftTriple", 128, "RP"), "43.83"),
        (("rolinek-2020", 3, "Contrastive", 512, "R@1"), "26.4"),
    ],
)
def test_numbers_are_those_of_the_page(found, expected):
    source, table, method, dim, metric = found
    numbers = [each for each in printed(source, table=table, method=method) if (each.dim, each.metric) == (dim, metric)]
    assert [each.printed for each in numbers] == [expected]


def test_intervals_of_the_reality_check():
    numbers = printed("reality-check")
    assert all((each.plus_minus is None) == (each.method == "Pretrained") for each in numbers)
    arcface = next(row for row in published("reality-check", data="SOP", method="ArcFace") if row["dim"] == 128)
    assert (arcface["test R@1"], arcface["test R@1 ±"]) == (0.7088, 0.0151)


def test_what_the_reality_check_prints_in_bold_is_the_best_of_its_column():
    columns = {(each.table, each.protocol, each.metric) for each in printed("reality-check")}
    assert len(columns) == 18
    for column in columns:
        numbers = [each for each in printed("reality-check") if (each.table, each.protocol, each.metric) == column]
        assert len(numbers) == 15
        assert [each.method for each in numbers if each.note == "printed in bold"] == [
            max(numbers, key=lambda each: each.value).method
        ]


def test_what_cannot_be_is_flagged_and_nothing_else():
    """Recall grows with K and MAP@R is at most R-precision, in all but the two rows that are flagged."""
    found = impossible(published())
    assert [sentence.split(":")[0] for sentence in found] == [
        "thesis, 10, SOP, bninception, 128, ArcFace",
        "thesis, 10, SOP, bninception, 1024, ArcFace",
    ]
    assert impossible(published(flagged=False)) == []
    flags = Counter((each.source, each.table, each.method, each.flag) for each in printed() if each.flag)
    assert flags == {
        ("thesis", "10", "ArcFace", "misprint"): 4,
        ("thesis", "11", "Triplet", "misprint"): 1,
        ("thesis", "11", "LiftedStructure", "misprint"): 1,
        ("thesis", "11", "SoftTriple", "cut off"): 1,
        ("unified-view", "2", "Margin", "disputed"): 1,
        ("rolinek-2020", "3", "Margin", "disputed"): 1,
    }


def test_impossible_numbers_are_found():
    found = impossible(
        [{"method": "a", "val R@2": 0.3, "val R@10": 0.2, "test RP": 0.1, "test MAP@R": 0.2, "test R@1": 1.5}]
    )
    assert found == [
        "a: test R@1 is 1.5, which is no share",
        "a: test MAP@R is 0.2, above test RP, which is 0.1",
        "a: val R@10 is 0.2, below val R@2, which is 0.3",
    ]


def test_tables_17_to_19_repeat_7_9_and_10():
    for copy, table in ((17, 7), (18, 9), (19, 10)):
        copied = {(each.method, each.metric): each.printed for each in printed("thesis", table=copy)}
        original = {
            (each.method, each.metric): each.printed for each in printed("thesis", table=table) if each.dim == 512
        }
        assert {key: value for key, value in copied.items() if key[0] != "OurLoss"} == original


def test_table_12_follows_from_table_13():
    tests = [each.value for each in printed("thesis", table=13) if each.on == "test"]
    row = printed("thesis", table=12, method="MultiSimilarity")[0]
    assert statistics.fmean(tests) == pytest.approx(row.value, abs=0.0051)
    assert round(statistics.stdev(tests), 2) == row.plus_minus != round(statistics.pstdev(tests), 2)


def test_two_sources_quote_the_same_papers_alike_but_for_one_number():
    """The unified view and Rolínek et al. copied 10 methods' numbers independently."""
    theirs = {}
    for each in printed("rolinek-2020", origin="quoted"):
        theirs.setdefault((each.data, each.method, each.metric), []).append(each)
    shared = [
        each for each in printed("unified-view", origin="quoted") if (each.data, each.method, each.metric) in theirs
    ]
    assert len(shared) > 40
    differ = [
        each for each in shared if each.value not in [x.value for x in theirs[each.data, each.method, each.metric]]
    ]
    assert [(each.method, each.metric, each.flag) for each in differ] == [("Margin", "R@1", "disputed")]


def test_sentences_of_the_remarks_follow_from_the_tables():
    def one(source, table, method, data="CUB200", dim=512, metric="R@1"):
        numbers = printed(source, table=table, method=method, data=data)
        return next(each.value for each in numbers if (each.dim, each.metric) == (dim, metric))

    assert one("thesis", 6, "Margin", dim=128) - one("thesis", 6, "NPair", dim=128) == pytest.approx(4.09)
    assert one("thesis", 16, "SoftTriple") < one("thesis", 7, "SoftTriple")
    cars = {"table": 20, "data": "Cars196", "dim": 1024}
    assert one("thesis", method="MultiSimilarity", **cars) - one(
        "thesis", method="ProxyAnchor", **cars
    ) == pytest.approx(0.94)
    sixth = sorted((one("thesis", 21, name, "Cars196", 1024) for name in TEN), reverse=True)[5]
    assert sixth == one("thesis", 21, "ArcFace", "Cars196", 1024)
    shop = {"table": 1, "data": "InShop"}
    assert one("unified-view", method="Binomial+VTHM", **shop) - one(
        "unified-view", method="Binomial", **shop
    ) == pytest.approx(4.09)
    means = [
        statistics.fmean(each.value for each in printed("thesis", table=t) if each.metric == "R@1") for t in (6, 7, 8)
    ]
    assert [round(mean, 2) for mean in means] == [63.43, 61.67, 57.6]
    assert {each.source for each in remarks()} <= set(SOURCES)


def test_names_are_names_of_this_library():
    for method in methods():
        assert not method.loss or method.loss in likewise.losses.__all__
        assert not method.miner or method.miner in likewise.miners.__all__
    for number in printed():
        assert DATA[number.data] in likewise.data.__all__
        assert number.trunk in TRUNKS or number.trunk == ""
        assert number.on in ("test", "val") or number.table == "11"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("contrastive", "Contrastive"),
        ("ContrastiveLoss", "Contrastive"),
        ("multi-similarity", "MultiSimilarity"),
        ("MS+Miner", "MultiSimilarity+Miner"),
        ("NPairsLoss", "NPair"),
        ("Margin / class", "Margin/class"),
        ("MarginLoss", "Margin"),
        ("RAW+VTHM (ours)", "RAW+VTHM"),
    ],
)
def test_methods_by_any_spelling(name, expected):
    assert method_of(name).method == expected


def test_every_method_has_one_spelling_each():
    names = [name.lower() for each in methods() if not each.source for name in (each.method, *each.spellings)]
    assert len(names) == len(set(names))


def test_one_name_may_be_two_losses():
    """The thesis' Eq. 2.21 is the generalized lifted structure; the reality check's ProxyNCA is a cross entropy."""
    assert method_of("LiftedStructure").loss == "LiftedStructureLoss"
    assert {row["loss"] for row in published("thesis", method="LiftedStructure")} == {"GeneralizedLiftedStructureLoss"}
    assert {row["loss"] for row in published("reality-check", method="ProxyNCA")} == {"ProxyNCAPPLoss"}
    assert {row["loss"] for row in published("thesis", method="ProxyNCA")} == {"ProxyNCALoss"}


def test_data_by_the_name_of_its_class():
    assert published("reality-check", data="StanfordOnlineProducts") == published("reality-check", data="SOP")


def test_tuned_on_test_is_said():
    assert all(row["tuned_on_test"] for row in published("thesis", table=6))
    assert not any(row["tuned_on_test"] for row in published("reality-check"))
    assert [row["fold"] for row in published("thesis", table=13)] == list(range(10))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"source": "a blog"}, "source must be one of 'thesis'"),
        ({"source": "thesis", "table": 15}, "table must be one of '6'"),
        ({"data": "MNIST"}, "data must be one of 'CUB200'"),
        ({"method": "magic"}, "method must be one of 'Pretrained'"),
        ({"origin": "invented"}, "origin must be one of 'measured'"),
    ],
)
def test_refusals(asked, words):
    with pytest.raises(ValueError, match=words):
        published(**asked)


def test_a_callers_change_does_not_reach_the_next_caller():
    published("thesis", table=6)[0]["test R@1"] = 0.0
    assert published("thesis", table=6)[0]["test R@1"] == 0.6028


def test_table_15_of_the_thesis():
    """As printed, row by row: the name, the range, the step and what was found."""
    printed = """
        MultiSimilarity|margin λ|[0,1]|0.1|0.8
        MultiSimilarity|scale α|(0,100]|2|18
        MultiSimilarity|scale β|(0,100]|2|76
        MultiSimilarity|epsilon|[0,1]|0.1|0.4
        SoftTriple|margin λ|[0,1]|0.1|0.4
        SoftTriple|scale α|(0,100]|2|78
        SoftTriple|weights lr|[0.00001, 0.0001]|0.00001|0.00005
        SoftTriple|gamma|(0,100]|10|58
        SoftTriple|tau|[0,1]|0.1|0.4
        ProxyAnchor|margin λ|[0,1]|0.1|0.1
        ProxyAnchor|scale α|(0,100]|2|32
    """
    rows = [line.strip().split("|") for line in printed.strip().splitlines()]
    told = [[row.loss.removesuffix("Loss"), row.printed, row.within, row.step, row.best] for row in TABLE_15]
    assert told == [[*words, float(step), float(found)] for *words, step, found in rows]
    for row in TABLE_15:
        owner = getattr(likewise.losses, row.loss)
        known = hyperparameters(owner) | {
            f"miner.{n}": h for n, h in hyperparameters(likewise.miners.MultiSimilarityMiner).items()
        }
        if row.path.startswith("loss."):
            hyper = known[row.path.removeprefix("loss.")]
            assert all(hyper.allows(value) for value in row.setting.grid())
        assert row.setting.has(row.setting.start)
        assert (thesis_best(row.loss)[row.path] in row.setting.grid()) == (row.printed != "gamma")
    assert thesis_best("SoftTripleLoss")["loss.gamma"] == pytest.approx(1 / 58)
    assert [len(thesis_space(name)) for name in ("MultiSimilarityLoss", "SoftTripleLoss", "ProxyAnchorLoss")] == [
        4,
        5,
        2,
    ]
