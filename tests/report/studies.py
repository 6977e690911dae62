"""Studies to report on.  Their numbers are invented: they are of a plausible size, and nothing was trained."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.protocols import leaderboards
from likewise.protocols.fairness import Difference
from likewise.protocols.pairs import Comparisons, compare_all
from likewise.protocols.tournament import tournament
from likewise.report.study import Study

LEVELS = {"contrastive": 0.412, "triplet": 0.371, "margin": 0.418, "multi-similarity": 0.447, "proxy anchor": 0.449}
SPACES = {
    "contrastive": {"loss.pos_margin": (0.0, 0.4), "loss.neg_margin": (0.4, 1.4)},
    "multi-similarity": {"loss.alpha": (0.01, 50.0), "loss.beta": (0.01, 50.0), "loss.base": (0.0, 1.0)},
    "proxy anchor": {"loss.margin": (0.0, 0.5), "loss.alpha": (4.0, 64.0), "optimizer.name": ("adam", "rmsprop")},
}
VERSIONS = "likewise 0.1.0, python 3.11.2, torch 2.13.0, numpy 2.2.6"
PROTOCOL = {
    "name": "fixed-validation",
    "sentence": "a fixed share of the training classes is held out for validation",
    "source": "the thesis, Section 5.2",
    "tuned_on_test": False,
}


def final_rows(methods: Sequence[str] = tuple(LEVELS), sizes: Sequence[int] = (64, 128), seeds: int = 5) -> list[dict]:
    """What final trainings leave."""
    chance, rows = random.Random(7), []
    hard = [chance.gauss(0.0, 0.004) for _ in range(seeds)]
    for method in methods:
        for dim in sizes:
            for seed in range(seeds):
                run = f"runs/{method.replace(' ', '-')}-dim{dim}-seed{seed}"
                level = LEVELS[method] + (0.021 if dim == 128 else 0.0) + hard[seed] + chance.gauss(0.0, 0.0035)
                row: dict[str, Any] = {"method": method, "data": "glyphs", "trunk": "convnet", "dim": dim, "seed": seed}
                row |= {"fold": 0, "stage": "final", "status": "done"}
                row |= {
                    "val MAP@R": level + 0.05,
                    "val R@1": level + 0.33,
                    "test R@1": level + 0.29,
                    "test MAP@R": level,
                }
                row |= {"seconds": chance.uniform(170.0, 260.0), "openings": 1, "tuned_on_test": False}
                command = f"likewise train --config study.yaml --loss {method.replace(' ', '-')} --model.dim {dim}"
                row |= {"key": f"{chance.getrandbits(64):016x}", "run": run, "error": None}
                row["command"] = f"{command} --seed {seed} --data.root ~/data/glyphs --out {run}"
                rows.append(row)
    return rows


def fail(row: dict[str, Any], why: str = "the loss is not finite after step 312") -> None:
    row |= {name: None for name in row if name.startswith(("val ", "test "))}
    row |= {"status": "failed", "error": why, "openings": 0}


def searched(methods: Mapping[str, Mapping[str, tuple[Any, Any]]] = SPACES, rounds: int = 24) -> dict[str, list[dict]]:
    """A search that gets better, with rounds that failed or were pruned on its way."""
    chance, found = random.Random(3), {}
    for method, space in methods.items():
        tried: list[dict[str, Any]] = []
        best = None
        for number in range(rounds):
            point: dict[str, Any] = {}
            far = 0.0
            for name, (low, high) in space.items():
                if isinstance(low, str):
                    point[name] = chance.choice((low, high))
                    continue
                share = chance.random() if number < 8 else min(1.0, max(0.0, chance.gauss(0.4, 0.18)))
                far += (share - 0.4) ** 2
                point[name] = low * (high / low) ** share if low and high / low > 50 else low + share * (high - low)
            status = "failed" if number == 5 else "pruned" if far > 0.22 else "done"
            value = LEVELS[method] + 0.06 - 0.3 * far + chance.gauss(0.0, 0.004) if status == "done" else None
            best = value if best is None or (value is not None and value > best) else best
            tried.append({"point": point, "value": value, "status": status, "best": best})
        found[method] = tried
    return found


def search_rows(search: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for method, tried in search.items():
        for number, one in enumerate(tried):
            row = {
                "method": method,
                "data": "glyphs",
                "trunk": "convnet",
                "dim": 64,
                **one["point"],
                "seed": 0,
                "fold": 0,
            }
            row |= {"stage": "search", "status": one["status"], "val MAP@R": one["value"], "seconds": 61.0 + number}
            why = {"failed": "out of memory on cuda:0", "pruned": "below the median at epoch 4"}.get(one["status"])
            row |= {
                "openings": 0,
                "tuned_on_test": False,
                "run": f"search/{method.replace(' ', '-')}-{number:03}",
                "error": why,
            }
            row["command"] = f"likewise train --config search/{method.replace(' ', '-')}-{number:03}.yaml"
            rows.append(row)
    return rows


def pairs_of(found: Comparisons) -> list[dict[str, Any]]:
    """Comparisons as plain data."""
    listed = []
    for (key, each), sentence in zip(found.cells.items(), found.sentences(), strict=True):
        sure = each.resolution is not None
        ends = {"low": each.difference.low if sure else None, "high": each.difference.high if sure else None}
        about = {"a": each.a, "b": each.b, "sentence": sentence, "mean": each.difference.mean, **ends}
        listed.append({**about, "pairs": each.pairs, "verdict": found.verdict(*key)})
    return listed


def difference(severity: str = "unfair") -> dict[str, Any]:
    found = Difference("embedding size", {"margin": 128, "triplet": 64, "contrastive": 64}, "More is better.")
    return {"what": found.what, "values": dict(found.values), "why": found.why, "severity": severity}


def make_study(**changed: Any) -> Study:
    """A whole study: five losses, two sizes, five seeds, and a search for three of the losses."""
    final, search = final_rows(), searched()
    broken = {**final[13], "seed": 5, "run": "runs/triplet-dim64-seed5"}
    fail(broken)
    final.append(broken)
    rows = final + search_rows(search)
    boards = leaderboards(final, within=("dim",))
    compared = compare_all(final, correct="holm")
    opened = [
        {
            "run": row["run"],
            "opened": f"2026-03-01T{10 + n // 12}:{5 * (n % 12):02}:09+01:00",
            "why": "the final number",
            "finished": True,
        }
        for n, row in enumerate(final)
        if row["openings"]
    ]
    given: dict[str, Any] = {
        "title": "Five losses on glyphs",
        "what": "A tournament of five losses at two embedding sizes, with five seeds each, after a search for three of them.",
        "rows": rows,
        "protocol": PROTOCOL,
        "tournament": tournament(final, "test MAP@R").to_dict(),
        "leaderboard": {
            f"dim {dim}": [{**row, "checked": True} for row in board.rows()] for (dim,), board in boards.items()
        },
        "comparisons": pairs_of(compared),
        "comparison_note": compared.note,
        "fairness": [
            {
                "what": "hardware",
                "values": dict.fromkeys(LEVELS, "cpu") | {"margin": "cuda"},
                "why": "Kernels round differently.",
                "severity": "note",
            }
        ],
        "search": search,
        "figures": {
            "A drawing": b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"><path d="M5 25 L30 12 L85 5" stroke="#888" fill="none"/></svg>'
        },
        "openings": opened,
        "command": "likewise tournament --preset smoke --out studies/five-losses",
        "versions": VERSIONS,
        "hardware": "2 cores of a server's CPU, no GPU",
    }
    return Study(**{**given, **changed})
