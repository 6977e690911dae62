"""Every command on the two pages is run, or, where it would train for long, configured."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from likewise.app.configuration import check, parse_request
from likewise.app.layers import read_request, with_paths
from likewise.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text()
BOTH = PAGE + (ROOT / "docs" / "configuration.md").read_text()
SHOWN = re.findall(r"^\$ likewise (.*)$", "".join(re.findall(r"^```console\n(.*?)^```", BOTH, re.S | re.M)), re.M)


@pytest.mark.parametrize("line", dict.fromkeys(SHOWN))
def test_a_command_on_the_page_works(line: str, run: Path, here: Path):
    (here / "runs").mkdir()
    for name in ("photos-efficientnet_lite0-multisimilarity-1", "birds"):
        shutil.copytree(run, here / "runs" / name)
    (here / "table.csv").write_text("path\nphotos/c00/0.png\n")
    words = shlex.split(line)
    if words == ["train", "photos"]:
        assert main([*words, "--print-config"]) == 0
    elif words[0] == "train" and not {"--resume", "--print-config", "--loss.help"} & set(words):
        assert parse_request(read_request(words[1:]))["data"]
    else:
        assert main(words) == 0


def test_the_file_on_the_page_is_a_configuration():
    text = (ROOT / "docs" / "configuration.md").read_text()
    short, full = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", text, re.S | re.M))
    assert check(short)["loss"]["init_args"]["margin"] == 0.2
    said = full
    assert check(said)["loss"]["init_args"]["miner"]["init_args"] == {"epsilon": 0.1}
    assert with_paths(said)["data"]["class_path"] == "likewise.data.ImageFolder"


def test_every_command_is_on_the_page():
    table = PAGE[PAGE.index("| command |") : PAGE.index("## Common behavior")]
    for name in COMMANDS:
        assert re.search(rf"`(likewise )?{name}\b", table), name
