"""What a weight depends on, from first principles."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import torch

from likewise.analysis.catalog import catalog
from likewise.analysis.similarity_table import Depends, Follows, as_markdown, derive, differences, similarity_table

NOT, STEPS, SMOOTH = Follows.NOT, Follows.IN_STEPS, Follows.SMOOTHLY
ANCHOR = ("the anchor's pairs",)
SAMPLE, PROXY = ("the sample's proxies",), ("the proxy's samples",)

# weight of a negative pair: itself, S, N, P, whose; then of a positive pair
EXPECTED = {
    # [s − m]₊: one step, at a fixed place; every positive is below its margin of one
    "Contrastive": (Depends(STEPS, STEPS, NOT, NOT, ()), Depends(NOT, NOT, NOT, NOT, ())),
    # [s_n − s_p + m]₊: a step for each positive, and only differences
    "Triplet": (Depends(STEPS, NOT, NOT, STEPS, ANCHOR), Depends(STEPS, NOT, STEPS, NOT, ANCHOR)),
    # σ(β(s − γ))
    "Binomial deviance": (Depends(SMOOTH, SMOOTH, NOT, NOT, ()), Depends(SMOOTH, SMOOTH, NOT, NOT, ())),
    # e^{s_j} / Σ e^{s_k}, of each side by itself; on cosines of a batch this large the hinge never lets go
    "Generalized lifted structure": (
        Depends(SMOOTH, NOT, SMOOTH, NOT, ANCHOR),
        Depends(SMOOTH, NOT, NOT, SMOOTH, ANCHOR),
    ),
    # log(1 + ΣΣ e^{s_n − s_p}): differences, of everything with everything
    "N-pairs": (Depends(SMOOTH, NOT, SMOOTH, SMOOTH, ANCHOR), Depends(SMOOTH, NOT, SMOOTH, SMOOTH, ANCHOR)),
    # Eq. 15, 16 on the pairs that VTHM keeps, which compares each side with the hardest of the other
    "RAW + VTHM": (Depends(SMOOTH, SMOOTH, SMOOTH, STEPS, ANCHOR), Depends(SMOOTH, SMOOTH, STEPS, SMOOTH, ANCHOR)),
    # a sample is compared with other samples of the proxy, against fixed margins
    "Proxy-Anchor": (
        Depends(SMOOTH, SMOOTH, SMOOTH, NOT, PROXY),
        Depends(SMOOTH, SMOOTH, NOT, SMOOTH, PROXY),
    ),
    # log Σ_{c ≠ y} e^{s_c} − s_y: the own proxy always weighs one
    "ProxyNCA": (Depends(SMOOTH, NOT, SMOOTH, NOT, SAMPLE), Depends(NOT, NOT, NOT, NOT, ())),
}


@cache
def derive_row(name: str) -> dict[str, Depends]:
    """Derive a row of the table once; it takes a second."""
    torch.manual_seed(0)
    return similarity_table({name: catalog()[name].make(4, 8).double()})[name]


@pytest.mark.parametrize("name", list(EXPECTED))
def test_the_table_from_first_principles(name: str):
    found = derive_row(name)
    assert (found["negative"], found["positive"]) == EXPECTED[name]


def test_anybodys_function():
    """``½ Σ s²``: a weight is the similarity itself, and nobody else's business."""
    found = derive(lambda s, labels: 0.5 * s.square().sum())
    assert found["negative"] == found["positive"] == Depends(SMOOTH, SMOOTH, NOT, NOT, ())


def test_what_happens_elsewhere_is_seen():
    """``Σ s · mean(s)``: every weight depends on the whole batch."""
    found = derive(lambda s, labels: s.sum() * s.mean())["negative"]
    assert found.N == found.P == SMOOTH
    assert found.along == ("the anchor's pairs", "the other end's pairs", "the whole batch")


def test_the_thesis_says_the_same_but_for_n_pairs():
    table = {name: derive_row(name) for name in ("Contrastive", "Triplet", "N-pairs")}
    assert differences(table) == {"N-pairs": ("N", "NP")}
    lines = as_markdown(table).splitlines()
    assert lines[2] == "| Contrastive | ○ | – | – | – | – | – | – |"
    assert len(lines) == 5


PAGE = (Path(__file__).parents[2] / "docs" / "lens.md").read_text()


def printed() -> dict[str, str]:
    rows = re.search(r"<!-- similarities -->(.*?)<!-- end -->", PAGE, re.DOTALL)[1].strip().splitlines()[2:]
    return {row.split(" | ")[0].removeprefix("| "): row for row in rows}


def test_the_page_has_every_loss():
    """If not: ``python tools/lens_figures.py`` makes the table and the gallery anew."""
    assert list(printed()) == list(catalog())


@pytest.mark.parametrize("name", [*EXPECTED, "Angular"])
def test_the_page_says_what_is_derived(name: str):
    """The rows that are derived above, and one that depends on the whole batch; a change of the derivation changes all."""
    assert as_markdown({name: derive_row(name)}).splitlines()[-1] == printed()[name]
