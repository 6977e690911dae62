"""Losses in JavaScript beside losses in Python: how far apart on random batches, and how long a batch of 200 takes.

    python -m benchmarks.lens.agreement [--batches 1000]

Every loss of the catalog, with hyper-parameters from the whole of their sliders: what `tests/analysis/test_lens.py`
asks of fewer batches.  The result is `benchmarks/results/lens-agreement.json`.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
from tests.analysis.agreement import NODE, TIES_ARE_FREE, batches, evaluated, facts, gaps, in_python

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from likewise.analysis.catalog import catalog
from likewise.analysis.lens import PAGE

RESULT = RESULTS / "lens-agreement.json"
SAMPLES, CLASSES = 200, 10

TIMING = """
const timed = (loss) => {
  let state = 1;
  const next = () => ((state = (state * 1664525 + 1013904223) %% 4294967296) / 4294967296) * 2 - 1;
  const n = %(samples)d, classes = %(classes)d;
  const x = new Float64Array(2 * n).map(next), labels = new Int32Array(n).map((_, i) => i %% classes);
  const proxies = loss.centers ? new Float64Array(classes * loss.centers * 2).map(next) : null;
  const values = loss.parameters.map((parameter) => parameter.value);
  const once = () => {
    const start = performance.now();
    loss.run(x, labels, n, 2, proxies, classes, values);
    return performance.now() - start;
  };
  const first = once();
  for (let i = 0; i < 40; i++) once();
  const times = Array.from({length: 41}, once).sort((a, b) => a - b);
  return {first_ms: first, median_ms: times[20], least_ms: times[0]};
};
"""


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--batches", type=int, default=1000, help="random batches for each loss")
    number = parser.parse_args().batches
    torch.set_num_threads(1)
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        known = facts(text, Path(folder))
        rows = [_row(name, known[name], text, number, Path(folder), k) for k, name in enumerate(known)]
    described = {"machine": machine("cpu") | {"threads": 1} | versions("torch") | {"node": _node()}, "batches": number}
    described |= {"samples": SAMPLES, "classes": CLASSES, "bytes": len(text.encode()), "rows": rows}
    write(described, RESULT)


def _row(name: str, said: dict[str, Any], text: str, number: int, folder: Path, seed: int) -> dict[str, Any]:
    cases = []
    for batch in batches(said, number, seed=seed, ties=name not in TIES_ARE_FREE):
        batch["expected"] = in_python(catalog()[name], said["parameters"], batch)
        cases.append((name, batch))
    worst = max(max(gap) for gap in gaps(text, cases, folder))
    timing = TIMING % {"samples": SAMPLES, "classes": CLASSES}
    times = json.loads(evaluated(text + timing, f"JSON.stringify(timed(LENS[{json.dumps(name)}]))", folder))
    row = {"loss": name, "worst_gap": float(f"{worst:.2g}"), **{key: round(value, 2) for key, value in times.items()}}
    print(json.dumps(row), flush=True)
    return row


def _node() -> str:
    assert NODE is not None, "timings are node's"
    return subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
