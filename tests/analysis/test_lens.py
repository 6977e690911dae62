"""Losses as JavaScript: every one of the catalog, and anybody's, says there what it says in Python."""

from __future__ import annotations

import json
import math
import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from likewise.analysis import lens
from likewise.analysis.catalog import Entry, catalog
from likewise.analysis.curves import weight_curves
from likewise.analysis.lens import PAGE, script_of, scripts, write_scripts
from likewise.analysis.printing import BY_HAND
from likewise.formula import (
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    MatrixLoss,
    PerAnchor,
    TermValues,
    add_up,
    hyper,
    hyperparameters,
    logsumexp,
    mean,
    per_anchor,
    per_pair,
    s,
    s_p,
    sigmoid,
    softplus,
)
from likewise.losses import (
    Between,
    MarginLoss,
    PairLoss,
    ProxyLoss,
    ProxyRepulsionLoss,
    RAWLoss,
    SoftmaxLoss,
    TripletLoss,
    cross_entropy,
)
from likewise.miners import (
    BatchEasyHardMiner,
    DistanceWeightedMiner,
    MultiSimilarityMiner,
    TripletMarginMiner,
    TripletMiner,
)
from likewise.testing import loop_over
from tests.analysis.agreement import NODE, TIES_ARE_FREE, batches, evaluated, facts, gaps, in_python
from tests.report.browser import CHROMIUM

pytestmark = pytest.mark.skipif(NODE is None and CHROMIUM is None, reason="there is no node or Chromium to run it in")
CLOSE = 1e-9
GROUPS = 5


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def known(page: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return facts(page, tmp_path_factory.mktemp("facts"))


# ------------------------------------------------------------------------------------------------ the committed file


def test_it_names_every_loss(known: dict[str, Any]):
    assert list(known) == list(catalog()), "run `make lens`"


@loop_over("name", catalog())
def test_it_names_a_loss_with_its_parameters(known: dict[str, Any], name: str):
    entry, said = catalog()[name], known[name]
    example = entry.make(num_classes=3, embedding_dim=2)
    declared = {key: (each, _default(example, key)) for key, each in hyperparameters(entry.kind).items()}
    given = dict(entry.options)
    if "miner" in given:
        miner = given["miner"]()
        of_miner = hyperparameters(type(miner))
        declared |= {f"miner.{key}": (each, getattr(miner, key)) for key, each in of_miner.items()}
        if entry.kind.__name__ == "RAWLoss":
            del declared["margin"]  # of the mining that the miner takes the place of
    if name == "PNP":
        declared = {"temperature": declared["temperature"]}  # its default variant has no other parameter
    assert [each["name"] for each in said["parameters"]] == list(declared)
    for each in said["parameters"]:
        about, default = declared[each["name"]]
        assert each["help"] == about.help
        assert each["value"] == default
        assert each["whole"] == isinstance(default, int)
        assert each["least"] <= default <= each["most"]
        assert about.allows(each["least"])
        assert about.allows(each["most"])
        assert each["choices"] is None or default in each["choices"]
        assert each["choices"] is None or each["whole"], "every number that is not whole is a slider"
        assert not each["log"] or each["least"] > 0
    assert said["kind"] == entry.kind.__name__
    about = (entry.kind.__doc__ or "").split("\n\n")[0].strip()
    assert said["about"] == about
    assert (said["centers"] > 0) == entry.has_proxies
    assert said["exact"] == (name != "SphereFace")
    assert not said["formula"] or said["formula"].split()[0] in (entry.kind.__doc__ or "")


def _default(example: Any, name: str) -> Any:
    default = next(field.default for field in fields(example) if field.name == name)
    return getattr(example, name) if default is None else default


def test_sources_and_formulas_are_read_off_the_docstrings(known: dict[str, Any]):
    assert known["Multi-similarity"]["cite"] == "Wang et al. 2019"
    assert known["Histogram"]["cite"] == "Ustinova & Lempitsky 2016"
    assert known["RAW + VTHM"]["cite"] == "Eq. 17 of the unified view"
    assert known["CosFace"]["formula"].startswith(r"-\log\frac{e^{\sigma(\cos\theta_y-m)}}")
    assert known["RAW + VTHM"]["miner"] == "ValidTripletMiner"
    assert known["Softmax"]["similarity"] == "dot"


def test_it_is_small_and_needs_no_eval(page: str):
    assert len(page.encode()) < 300_000
    assert "eval(" not in page
    assert "new Function" not in page


def test_it_is_what_is_printed_now(page: str):
    assert scripts() == page, "run `make lens`"


@pytest.mark.parametrize("group", range(GROUPS))
def test_it_agrees_with_python(page: str, known: dict[str, Any], tmp_path: Path, group: int):
    number = 20
    cases = []
    for k, (name, entry) in list(enumerate(catalog().items()))[group::GROUPS]:
        for batch in batches(known[name], number, seed=1000 * number + k, ties=name not in TIES_ARE_FREE):
            batch["expected"] = in_python(entry, known[name]["parameters"], batch)
            cases.append((name, batch))
    random.Random(0).shuffle(cases)  # losses and sizes by turns, so that arrays which are used again are found out
    for (name, batch), gap in zip(cases, gaps(page, cases, tmp_path), strict=True):
        assert max(gap) < CLOSE, (name, batch["values"], batch["labels"].tolist(), gap)


def test_a_difference_would_be_seen(page: str, known: dict[str, Any], tmp_path: Path):
    entry = catalog()["Multi-similarity"]
    batch = batches(known[entry.name], 1, seed=0)[0]
    right = in_python(entry, known[entry.name]["parameters"], batch)
    derivatives = list(right["matrices"][0]["derivatives"])
    derivatives[1] += 1e-6
    wrong = [
        {**right, "value": right["value"] * (1.0 + 1e-6)},
        {**right, "gradient": right["gradient"][:-1]},
        {**right, "matrices": [{**right["matrices"][0], "derivatives": derivatives}]},
        {**right, "matrices": [{**right["matrices"][0], "between": "samples against proxies"}]},
        {**right, "matrices": []},
    ]
    found = gaps(page, [(entry.name, {**batch, "expected": each}) for each in [right, *wrong]], tmp_path)
    assert [max(gap) < CLOSE for gap in found] == [True] + [False] * len(wrong)


def test_odd_batches_have_finite_numbers(page: str, tmp_path: Path):
    """One sample, points that are zero, all alike, opposite, huge or next to nothing."""
    program = """
    const numbers = (said) => [said.value, ...said.gradient, ...(said.proxyGradient || []),
      ...said.matrices.flatMap((matrix) => [...matrix.s, ...matrix.derivatives])];
    const odd = {one: [[1, 2]], zero: [[0, 0], [1, 0], [0, 0]], alike: [[1, 2], [1, 2], [1, 2], [1, 2]],
      opposite: [[1, 2], [-1, -2], [1, 2], [-1, -2]], huge: [[1e100, 2e100], [3e100, -1e100], [1, 1]],
      tiny: [[1e-300, 2e-300], [3e-300, -1e-300], [1e-310, 0]]};
    const broken = [];
    for (const [name, loss] of Object.entries(LENS)) for (const [what, points] of Object.entries(odd))
      for (const labels of [points.map(() => 0), points.map((_, i) => i % 2), points.map((_, i) => i)]) {
        const classes = Math.max(...labels) + 1, n = points.length;
        const proxies = loss.centers ? new Float64Array(classes * loss.centers * 2).map((_, i) => Math.cos(i)) : null;
        const values = loss.parameters.map((parameter) => parameter.value);
        const said = loss.run(Float64Array.from(points.flat()), Int32Array.from(labels), n, 2, proxies, classes, values);
        if (!numbers(said).every(Number.isFinite)) broken.push([name, what, labels]);
      }
    """
    assert json.loads(evaluated(page + program, "JSON.stringify(broken)", tmp_path)) == []


# ------------------------------------------------------------------------------------------------ anybody's losses


class SoftGap(PairLoss):
    """The mean positive against the hardest negatives."""

    scale: float = hyper(default=4.0, help="scale", above=0.0, search=(1.0, 20.0), log=True)
    steps: int = hyper(default=1, help="how often it is squared", at_least=0, at_most=1)

    def declare(self):
        value = softplus(logsumexp(self.scale * s, NEGATIVES) / self.scale - mean(s, POSITIVES))
        for _ in range(self.steps):
            value = value * value
        return per_anchor(value)


class Bent(PairLoss):
    """Somebody's whim."""

    at: float = hyper(default=0.0, help="what becomes of it", at_least=0.0, at_most=1.0)

    def declare(self):
        return per_pair(NEGATIVES, s if self.at < 0.4 else s * s)


class Logarithmic(PairLoss):
    """A scale that Python computes: it is no number of the formula."""

    power: float = hyper(default=1.0, help="a power of ten", at_least=0.0, at_most=2.0)

    def declare(self):
        return per_pair(POSITIVES, math.exp(-self.power) * s)


class SoftRank(PairLoss):
    """The soft rank of every positive, a fold per positive inside a fold over positives."""

    temperature: float = hyper(default=0.1, help="temperature", above=0.0, search=(0.01, 1.0), log=True)

    def declare(self):
        rank = add_up(sigmoid((s - s_p) / self.temperature), NEGATIVES)
        return per_anchor(add_up(rank / (1.0 + rank), EACH_POSITIVE))


class Learned(PairLoss):
    """A scale and a bias that are learned; on the page they are numbers."""

    scale: float = hyper(default=2.0, help="scale", above=0.0, search=(1.0, 20.0), learn=True)
    bias: float = hyper(default=-1.0, help="bias", search=(-5.0, 0.0), learn=True)

    def declare(self):
        return per_pair(NEGATIVES, softplus(self.scale * s + self.bias))


class Nearest(ProxyLoss):
    """A softmax over proxies whose scale is a square."""

    angle: float = hyper(default=0.5, help="an angle", at_least=0.0, at_most=1.5)

    def declare(self):
        logit = (1.0 + self.angle * self.angle) * s
        return {Between.SAMPLES_PROXIES: cross_entropy(logit, logit)}


@pytest.mark.parametrize(
    ("kind", "sliders"),
    [
        (SoftGap, [("scale", 1.0, 20.0, None), ("steps", 0, 1, (0, 1))]),
        (Bent, [("at", 0.0, 1.0, (0.0, 0.5, 1.0))]),
        (Logarithmic, [("power", 0.0, 2.0, (0.0, 1.0, 2.0))]),
        (SoftRank, [("temperature", 0.01, 1.0, None)]),
        (Nearest, [("angle", 0.0, 1.5, None)]),
    ],
)
def test_a_loss_declared_outside_the_package(kind: type, sliders: list[Any], tmp_path: Path):
    made = script_of(kind)
    assert [(each.name, each.least, each.most, each.choices) for each in made.parameters] == sliders
    _agrees(Entry(kind.__name__, kind), made.text(), tmp_path)


def test_a_loss_with_a_miner_of_its_own(tmp_path: Path):
    made = script_of(RAWLoss(miner=MultiSimilarityMiner(epsilon=0.3)), name="Mine")
    assert [each.name for each in made.parameters] == ["alpha", "beta", "base", "miner.epsilon"]  # margin does nothing
    assert made.parameters[-1].value == 0.3
    _agrees(Entry("Mine", RAWLoss, (("miner", MultiSimilarityMiner),)), made.text(), tmp_path)


@pytest.mark.parametrize(
    ("miner", "sliders"),
    [
        (TripletMarginMiner(0.3), ["margin", "miner.margin"]),
        (TripletMarginMiner(0.3, kind="semihard"), ["margin", "miner.margin"]),
        (TripletMarginMiner(0.3, kind="easy"), ["margin", "miner.margin"]),
        (BatchEasyHardMiner("semihard", "hard", positive_range=(-0.5, 0.9)), ["margin"]),
        (BatchEasyHardMiner("all", "all", negative_range=(-0.5, 0.9)), ["margin"]),
    ],
    ids=repr,
)
def test_a_triplet_loss_with_a_rule(miner: TripletMiner, sliders: list[str], tmp_path: Path):
    made = script_of(TripletLoss(0.5, miner=miner), name="Mine")
    assert [each.name for each in made.parameters] == sliders
    _agrees(Entry("Mine", TripletLoss, (("miner", lambda: miner),)), made.text(), tmp_path)


def test_a_learned_number_begins_where_it_is(tmp_path: Path):
    made = script_of(MarginLoss(beta=0.9), name="Mine")
    assert [(each.name, pytest.approx(each.value)) for each in made.parameters] == [
        ("margin", 0.2),
        ("beta", 0.9),
        ("nu", 0.0),
    ]
    _agrees(Entry("Mine", MarginLoss), made.text(), tmp_path)
    made = script_of(Learned(scale=3.0))
    assert [(each.name, pytest.approx(each.value)) for each in made.parameters] == [("scale", 3.0), ("bias", -1.0)]
    assert "h_scale" in made.text()
    assert "h_bias" in made.text()


def _agrees(entry: Entry, text: str, folder: Path) -> None:
    said = facts(text, folder)[entry.name]
    cases = []
    for batch in batches(said, 60, seed=1):
        batch["expected"] = in_python(entry, said["parameters"], batch)
        cases.append((entry.name, batch))
    assert max(max(gap) for gap in gaps(text, cases, folder)) < CLOSE


def squares(S: Tensor, labels: Tensor) -> Tensor:
    """Cosines of positive pairs to one, of negative pairs to zero."""
    return (S - (labels[:, None] == labels[None, :]).double()).square().mean()


class Whole(PairLoss):
    """A function of the matrix."""

    def declare(self):
        return MatrixLoss.by_rows(
            lambda S, positive, negative: [TermValues((S * S * negative).sum(1), negative.sum(1), negative.sum(1))]
        )


class Longest(PairLoss):
    """An anchor's length."""

    def declare(self):
        length = PerAnchor("length", lambda batch: batch.anchors.norm(dim=1))
        return per_anchor(length * mean(s, NEGATIVES))


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        (Longest(), "length of Longest is a Python function that has no JavaScript"),
        (MarginLoss(num_classes=5), "beta of MarginLoss is one number for each class, which has no JavaScript"),
        (
            TripletLoss(similarity="poincare"),
            "the similarity Poincare(normalize=False, curvature=0.1, clip=2.3) has no JavaScript",
        ),
        (
            TripletLoss(miner=DistanceWeightedMiner()),
            "the choice of DistanceWeightedMiner is not a formula of this loss",
        ),
        (
            ProxyRepulsionLoss(4, 2, through_samples=True),
            "how ProxyRepulsionLoss compares proxies has no JavaScript",
        ),
    ],
)
def test_the_page_says_why_a_loss_has_no_javascript(loss: Any, reason: str, monkeypatch: pytest.MonkeyPatch):
    """The curves, which take seconds, are those of another loss."""
    monkeypatch.setattr("likewise.analysis.lens._by_curves", lambda loss: "null")
    assert f"curves of a typical batch that Python computed, because {reason}." in script_of(loss, name="Mine").text()


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        (squares, "it is a Python function that has no JavaScript"),
        (Whole(), "a function of the matrix of Whole is a Python function that has no JavaScript"),
    ],
)
def test_what_has_no_javascript_is_shown_by_its_python_curves(loss: Any, reason: str, tmp_path: Path):
    made = script_of(loss, name="Mine")
    said = facts(made.text(), tmp_path)["Mine"]
    assert said["about"].endswith(f"curves of a typical batch that Python computed, because {reason}.")
    assert said["parameters"] == []
    curve = weight_curves({"it": loss}, classes=5)["it"]
    program = f"""
    const points = Float64Array.of(1, 0, {math.cos(1.0)}, {math.sin(1.0)});
    const weights = [[0, 0], [0, 1]].map((labels) =>
      LENS.Mine.run(points, Int32Array.from(labels), 2, 2, null, 2, []).matrices[0].derivatives[1]);
    """
    near, far = json.loads(evaluated(made.text() + program, "JSON.stringify(weights)", tmp_path))
    place = int((curve.similarities < math.cos(1.0)).sum())
    for derivative, weights, sign in ((near, curve.positive, -1.0), (far, curve.negative, 1.0)):
        ends = [sign * float(weights.mean(dim=0)[k]) for k in (place - 1, place)]
        assert min(ends) - 1e-5 <= derivative <= max(ends) + 1e-5


def test_proxies_without_javascript_are_shown_by_their_python_curves(tmp_path: Path):
    made = script_of(SoftmaxLoss(4, 2, bias=True), name="Mine")
    said = facts(made.text(), tmp_path)["Mine"]
    assert said["about"].endswith("because bias of SoftmaxLoss is a Python function that has no JavaScript.")
    assert said["centers"] == 1
    program = """
    const points = Float64Array.of(1, 0, 0, 1), proxies = Float64Array.of(0.6, 0.8, -0.8, 0.6);
    const labels = Int32Array.of(0, 1);
    const {matrices: [{between, derivatives}], proxyGradient} = LENS.Mine.run(points, labels, 2, 2, proxies, 2, []);
    """
    found = json.loads(
        evaluated(made.text() + program, "JSON.stringify([between, [...derivatives], [...proxyGradient]])", tmp_path)
    )
    assert found[0] == "samples against proxies"
    assert found[1][0] < 0.0 <= found[1][1]
    assert any(found[2])


def test_what_is_no_loss_is_refused():
    with pytest.raises(TypeError, match="source must be a loss, an entry of the catalog or a function"):
        script_of(3)  # type: ignore[arg-type]


def test_every_function_by_hand_belongs_to_a_loss(page: str):
    for line in BY_HAND.splitlines():
        name = line.removeprefix("function ").removeprefix("const ").partition("(")[0].partition(" ")[0]
        if line.startswith(("function ", "const ")) and "Loss_" in name:
            assert page.count(name) > 1, f"nothing uses {name}"


def test_the_file_is_written_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "losses.js"
    path.write_text("before")
    monkeypatch.setattr(lens, "scripts", lambda: "after")
    assert write_scripts(path) == path
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]

    def broken() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(lens, "scripts", broken)
    with pytest.raises(KeyboardInterrupt):
        write_scripts(path)
    assert path.read_text() == "after"
