"""The figure of the metrics page: recall, NMI and F1 near 100 everywhere, MAP@R climbing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "tools" / "why_map_at_r.py"


def test_only_map_at_r_tells_the_spaces_apart():
    spec = importlib.util.spec_from_file_location("why_map_at_r", PATH)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    found = [tool.scores(*tool.space(gap)) for gap in tool.GAPS.values()]
    for each in found:
        assert min(each["NMI"], each["F1"], each["R@1"]) > 99.0
    first, second, third = (each["MAP@R"] for each in found)
    assert 68.0 < first < 73.0
    assert first + 5.0 < second < third - 5.0
    assert third > 99.0
