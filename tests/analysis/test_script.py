"""Losses as JavaScript: every one of the catalog, and anybody's, says there what it says in Python."""

from __future__ import annotations

import bisect
import doctest
import importlib
import json
import math
import pkgutil
import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import likewise.analysis.javascript as compiler
from likewise.analysis import script
from likewise.analysis.catalog import Entry, catalog
from likewise.analysis.script import PAGE, script_of, write_scripts
from likewise.analysis.tracing import TracingError
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    hyper,
    hyperparameters,
    logsumexp,
    mean,
    per_anchor,
    per_pair,
    s,
    softplus,
)
from likewise.losses import ContrastiveLoss, PairLoss, ProxyLoss, SoftmaxLoss
from likewise.losses.proxy_base import Between, cross_entropy
from tests.analysis.agreement import NODE, TIES_ARE_FREE, batches, evaluated, facts, gaps, in_python, said_by
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


@pytest.mark.parametrize("name", catalog())
def test_it_names_a_loss_with_its_parameters(known: dict[str, Any], name: str):
    entry, said = catalog()[name], known[name]
    declared = {key: (each, _default(entry.kind, key)) for key, each in hyperparameters(entry.kind).items()}
    given = dict(entry.options)
    if "miner" in given:
        miner = given["miner"]()
        of_miner = hyperparameters(type(miner))
        declared |= {f"miner.{key}": (each, getattr(miner, key)) for key, each in of_miner.items()}
        if entry.kind.__name__ == "RAWLoss":
            del declared["margin"]  # of the mining that the miner takes the place of
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
        assert (each["choices"] is not None) == each["whole"], "every number that is not whole is a slider"
        assert not each["log"] or each["least"] > 0
    assert said["kind"] == entry.kind.__name__
    assert said["about"] == (entry.kind.__doc__ or "").split("\n\n")[0].strip()
    assert (said["centers"] > 0) == entry.has_proxies
    assert said["exact"] == (name != "SphereFace")
    assert not said["formula"] or said["formula"].split()[0] in (entry.kind.__doc__ or "")


def _default(kind: Any, name: str) -> Any:
    return next(field.default for field in fields(kind) if field.name == name)


def test_sources_and_formulas_are_read_off_the_docstrings(known: dict[str, Any]):
    assert known["Multi-similarity"]["cite"] == "Wang et al. 2019"
    assert known["Histogram"]["cite"] == "Ustinova & Lempitsky 2016"
    assert known["RAW + VTHM"]["cite"] == "Eq. 17 of the unified view"
    assert known["CosFace"]["formula"].startswith(r"-\log\frac{e^{\sigma(\cos\theta_y-m)}}")
    assert known["RAW + VTHM"]["miner"] == "ValidTripletMiner"
    assert known["Softmax"]["similarity"] == "dot"


def test_it_is_small_and_needs_no_eval(page: str):
    assert len(page.encode()) < 600_000
    assert "eval(" not in page
    assert "new Function" not in page


@pytest.mark.slow
@pytest.mark.parametrize("loss", [ContrastiveLoss, SoftmaxLoss])
def test_it_is_what_is_written_now(page: str, loss: type):
    name = {ContrastiveLoss: "Contrastive", SoftmaxLoss: "Softmax"}[loss]
    made = script_of(catalog()[name])
    assert made.entry in page, "run `make lens`"
    assert all(function in page for function in made.functions.values())


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("number", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_it_agrees_with_python(page: str, known: dict[str, Any], tmp_path: Path, number: int, group: int):
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
    slopes = list(right["matrices"][0]["slopes"])
    slopes[1] += 1e-6
    wrong = [
        {**right, "value": right["value"] * (1.0 + 1e-6)},
        {**right, "gradient": right["gradient"][:-1]},
        {**right, "matrices": [{**right["matrices"][0], "slopes": slopes}]},
        {**right, "matrices": [{**right["matrices"][0], "between": "samples against proxies"}]},
        {**right, "matrices": []},
    ]
    found = gaps(page, [(entry.name, {**batch, "expected": each}) for each in [right, *wrong]], tmp_path)
    assert [max(gap) < CLOSE for gap in found] == [True] + [False] * len(wrong)


def test_odd_batches_have_finite_numbers(page: str, tmp_path: Path):
    """One sample, points that are zero, all alike, opposite, huge or next to nothing."""
    program = """
    const numbers = (said) => [said.value, ...said.gradient, ...(said.proxyGradient || []),
      ...said.matrices.flatMap((matrix) => [...matrix.s, ...matrix.slopes])];
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


class Nearest(ProxyLoss):
    """A softmax over proxies whose scale is a cosine."""

    angle: float = hyper(default=0.5, help="an angle", at_least=0.0, at_most=1.5)

    def declare(self):
        logit = (1.0 + math.cos(self.angle)) * s
        return {Between.SAMPLES_PROXIES: cross_entropy(logit, logit)}


def test_a_loss_declared_outside_the_package(tmp_path: Path):
    made = script_of(SoftGap)
    assert [(each.name, each.choices) for each in made.parameters] == [("scale", None), ("steps", (0, 1))]
    _agrees(Entry("SoftGap", SoftGap), made.text(), tmp_path)


def test_a_number_that_python_decides_by_is_a_choice(tmp_path: Path):
    made = script_of(Bent)
    assert [each.choices for each in made.parameters] == [(0.0, 0.5, 1.0)]
    _agrees(Entry("Bent", Bent), made.text(), tmp_path)


def test_a_loss_with_proxies_declared_outside_the_package(tmp_path: Path):
    made = script_of(Nearest, name="Mine")
    assert [(each.name, each.least, each.most, each.choices) for each in made.parameters] == [("angle", 0.0, 1.5, None)]
    _agrees(Entry("Mine", Nearest), made.text(), tmp_path)


def _agrees(entry: Entry, text: str, folder: Path) -> None:
    said = facts(text, folder)[entry.name]
    cases = []
    for batch in batches(said, 60, seed=1):
        batch["expected"] = in_python(entry, said["parameters"], batch)
        cases.append((entry.name, batch))
    assert max(max(gap) for gap in gaps(text, cases, folder)) < CLOSE


def everything(S: Tensor, labels: Tensor) -> Tensor:
    """Sorting, running sums, places, conditions, products: what losses are made of."""
    same = labels[:, None] == labels[None, :]
    ordered, order = S.sort(dim=1, descending=True, stable=True)
    ranks = torch.searchsorted(S.detach().sort(dim=1).values, S.detach())
    histogram = torch.zeros_like(S).scatter_add(1, (labels[:, None] + labels[None, :]) % 2, S)
    parts = [
        (ordered.cumsum(dim=1) * same.gather(1, order)).mean(),
        (S * ranks).sum() / len(S),
        histogram.square().sum(),
        torch.log_softmax(3.0 * S, dim=0).diagonal().mean(),
        torch.nn.functional.cross_entropy(5.0 * S, torch.arange(len(S))),
        (S @ S @ S).amax(dim=1).sum(),
        torch.cat([S[:1].exp(), S[1:].tanh().flip(0)]).std(),
        torch.where(same, S.clamp_min(1e-3).log(), S.masked_fill(same, -torch.inf))
        .logsumexp(dim=1)
        .clamp_min(-9.0)
        .sum(),
        S.roll(1, 0).mul(S.T)[labels % 2].sum(),
        S.clone().fill_diagonal_(0.5).prod(dim=1).sum(),
        (S[:, :, None] - S[:, None, :]).relu().mean(),
        torch.quantile(S, 0.3, dim=0).sum(),
    ]
    return torch.stack(parts).sum()


def test_a_function_of_similarities(tmp_path: Path):
    text = script_of(everything).text()
    cases = []
    for batch in batches({"centers": 0, "parameters": []}, 48, seed=2, ties=False):
        batch["expected"] = said_by(everything, batch)
        cases.append(("everything", batch))
    assert max(max(gap) for gap in gaps(text, cases, tmp_path)) < CLOSE


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            lambda S, labels: torch.erf(S).sum(),
            "Mine cannot be written as JavaScript: torch's operation erf is not known here",
        ),
        (lambda S, labels: (S * torch.rand_like(S)).sum(), "torch's operation rand_like is not known here"),
        (lambda S, labels: S[labels == 0].sum(), "Mine cannot be traced: it asks for the value of a tensor"),
        (lambda S, labels: S.sum() * S.mean().item(), "Mine cannot be traced: it asks for the value of a tensor"),
        (lambda S, labels: sum(S[i, i] for i in range(len(S))), "the number of samples as a plain number"),
        (lambda S, labels: S.reshape(-1)[: int(labels.shape[0])].sum(), "the number of samples as a plain number"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_sentence(loss: Any, message: str):
    with pytest.raises(TracingError, match=message) as refused:
        script_of(loss, name="Mine")
    assert "\n" not in str(refused.value)


def test_what_is_no_loss_is_refused():
    with pytest.raises(TypeError, match="source must be a loss, an entry of the catalog or a function"):
        script_of(3)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ the pieces


def test_helpers_sort_search_and_multiply(tmp_path: Path):
    chance = random.Random(3)
    rows = [[chance.choice((-1.5, 0.0, -0.0, 2.0, 1e300, -1e-300, 7.25, -1e9)) for _ in range(9000)] for _ in range(2)]
    short = [[float(chance.randint(0, 9)) for _ in range(57)] for _ in range(5)]
    wanted = [chance.uniform(-1.0, 10.0) for _ in range(20)] + [float(k) for k in range(10)]
    left = np.random.default_rng(0).normal(size=(7, 6))
    right = np.random.default_rng(1).normal(size=(6, 5))
    right[5] = 0.0
    right[4, 2] = 0.0
    program = (
        (Path(compiler.__file__).parent / "runtime.js").read_text()
        + f"""
    const sorted = (rows, kept, descending, withOrder) => {{
      const columns = rows[0].length, size = rows.length * kept;
      const values = new Float64Array(size), order = withOrder ? new Float64Array(size) : null;
      sortRows(Float64Array.from(rows.flat()), rows.length, columns, kept, values, order, descending);
      return [Array.from(values), order && Array.from(order)];
    }};
    const rows = {json.dumps(rows)}, short = {json.dumps(short)}, line = Float64Array.from(short[0]).sort();
    const left = Float64Array.from({json.dumps(left.flatten().tolist())});
    const right = Float64Array.from({json.dumps(right.flatten().tolist())}), out = new Float64Array(35);
    multiply(out, left, 0, 6, 1, right, 0, 5, 1, 7, 6, 5);
    const turned = new Float64Array(36);
    multiply(turned, left, 0, 1, 6, left, 0, 6, 1, 6, 7, 6);
    const answer = {{
      many: sorted(rows, 9000, false, true), short: sorted(short, 57, false, true), top: sorted(short, 4, true, true),
      values: sorted(short, 57, false, false), product: Array.from(out), turned: Array.from(turned),
      places: {json.dumps(wanted)}.map((value) => [below(line, 0, 57, value), notAbove(line, 0, 57, value)]),
      rounded: [0.5, 1.5, 2.5, -0.5, -1.5, 2.4].map(toEven), rest: [modulo(-7, 3), modulo(7, -3), modulo(6, 3), modulo(-0.5, 0.3)],
    }};
    """
    )
    found = json.loads(evaluated(program, "JSON.stringify(answer)", tmp_path))
    for name, source in (("many", rows), ("short", short)):
        values, order = (torch.tensor(each, dtype=torch.float64).view(len(source), -1) for each in found[name])
        expected = torch.tensor(source, dtype=torch.float64).sort(dim=1, stable=True)
        assert torch.equal(values, expected.values)
        assert torch.equal(order.long(), expected.indices)
    assert found["values"] == [found["short"][0], None]
    expected = torch.tensor(short).sort(dim=1, stable=True, descending=True)
    assert torch.equal(torch.tensor(found["top"][0]).view(5, 4), expected.values[:, :4])
    assert torch.equal(torch.tensor(found["top"][1]).long().view(5, 4), expected.indices[:, :4])
    line = sorted(short[0])
    assert found["places"] == [[bisect.bisect_left(line, v), bisect.bisect_right(line, v)] for v in wanted]
    np.testing.assert_allclose(np.array(found["product"]).reshape(7, 5), left @ right, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.array(found["turned"]).reshape(6, 6), left.T @ left, rtol=0, atol=1e-14)
    assert found["rounded"] == [0, 2, 2, 0, -2, 2]
    np.testing.assert_allclose(found["rest"], [-7 % 3, 7 % -3, 0, -0.5 % 0.3], rtol=0, atol=1e-15)


def test_the_file_is_written_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "losses.js"
    path.write_text("before")
    monkeypatch.setattr(script, "scripts", lambda: "after")
    assert write_scripts(path) == path
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]

    def broken() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(script, "scripts", broken)
    with pytest.raises(KeyboardInterrupt):
        write_scripts(path)
    assert path.read_text() == "after"


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(compiler.__path__)])
def test_examples_of_the_compiler_run(name: str):
    module = importlib.import_module(f"{compiler.__name__}.{name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).failed == 0
