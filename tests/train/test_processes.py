"""Two processes that train together make the step that one would make, and write one record."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from likewise.testing import loop_over
from likewise.train import Run, ScheduleConfig, TrainConfig, train
from tests.train.small import draw, linear, same
from tests.train.two import SETTINGS, Centers, Ill, mining, pooled, share

ROOT = Path(__file__).parents[2]


def start(folder: Path, *what: str, seconds: float = 120.0) -> tuple[list[int | None], str]:
    """Exit codes of both processes, and what they said; nobody is left behind."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common["GLOO_SOCKET_IFNAME"] = "lo"
    environment = {
        **os.environ,
        **common,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    command = [sys.executable, str(Path(__file__).with_name("two.py")), str(folder), *what]
    both = []
    for rank in "01":
        own = {**environment, "RANK": rank, "LOCAL_RANK": rank}
        log = (folder / f"said-{rank}.txt").open("w")
        both.append(subprocess.Popen(command, env=own, stdout=log, stderr=log))
        log.close()
    codes: list[int | None] = []
    try:
        for process in both:
            try:
                codes.append(process.wait(timeout=seconds))
            except subprocess.TimeoutExpired:
                codes.append(None)
    finally:
        for process in both:
            process.kill()
            process.wait()
    return codes, "\n".join((folder / f"said-{rank}.txt").read_text() for rank in "01")


def by_hand(groups: list[list[int]], what: str = "") -> tuple[torch.nn.Module, torch.Tensor]:
    """Gradients of both shares, averaged; a group of batches is a step."""
    model, loss = linear(), Centers()
    optimizer = torch.optim.SGD([*model.parameters(), *loss.parameters()], lr=0.05, momentum=0.9)
    for _ in range(2):
        for group in groups:
            optimizer.zero_grad()
            for batches in (share(0, what), share(1, what)):
                for place in group:
                    images, labels = batches[place]
                    (loss(model(images), labels) / (2 * len(group))).backward()
            optimizer.step()
    return model, loss.centers.detach()


ONE_BY_ONE, TWO_AT_A_TIME = [[0], [1], [2]], [[0, 1], [2]]
GROUPS = {
    "plain": ONE_BY_ONE,
    "accumulate": TWO_AT_A_TIME,
    "chunks": ONE_BY_ONE,
    "chunks of several": TWO_AT_A_TIME,
    "uneven": ONE_BY_ONE,  # one process has chunks, the other none
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    codes, said = start(folder, *GROUPS, "norms", "alike", "mining")
    assert codes == [0, 0], said
    return folder


@pytest.mark.slow
@loop_over("what, groups", GROUPS.items())
def test_gradients_are_averaged(ended, what, groups):
    one, other = (torch.load(ended / f"{what}-{rank}.pt") for rank in range(2))
    assert same(one["model"], other["model"])
    assert torch.equal(one["centers"], other["centers"])
    model, centers = by_hand(groups, what)
    assert all(torch.allclose(one["model"][name], tensor, atol=1e-6) for name, tensor in model.state_dict().items())
    assert torch.allclose(one["centers"], centers, atol=1e-6)
    assert same(load_file(ended / what / "model.safetensors"), one["model"])


@pytest.mark.slow
@loop_over("what, groups", GROUPS.items())
def test_gradients_are_exchanged_once_a_step(ended, what, groups):
    """Chunks and parts of a step are added up first: gradients of the model are exchanged once, and those of the loss.

    Besides, each batch is agreed on twice: its embeddings and its loss are finite.
    """
    for rank in range(2):
        met = torch.load(ended / f"{what}-{rank}.pt")["met"][
            len(groups) :
        ]  # in the first epoch they get to know each other
        assert met == [2 * len(batches) + 2 for batches in groups]


@pytest.mark.slow
def test_statistics_of_chunks_are_those_of_the_first_process(ended):
    """As in a plain step: every process begins with those of the first one and counts its own chunks, once."""
    found = torch.load(ended / "norms-0.pt")["model"]
    kept = load_file(ended / "norms" / "model.safetensors")
    assert found["1.num_batches_tracked"] == 2 * 3 * 3  # epochs, batches, chunks
    assert torch.equal(found["1.running_mean"], kept["1.running_mean"])


@pytest.mark.slow
def test_embeddings_that_are_alike_on_one_process(ended):
    """All of its images are the same one; those of the other are not, and both go on."""
    run = Run(ended / "alike")
    assert [line["reason"] for line in run.metrics("end")] == ["finished"]
    assert min(line["spread"] for line in run.metrics("train")) > 1e-2


@pytest.mark.slow
def test_two_mine_what_one_mines(ended, tmp_path):
    """Each embeds its share of the images; both choose the batches that one process chooses."""
    model, loss, settings = pooled(), Ill(1000), TrainConfig(epochs=2, mine_steps=2)
    data = mining(draw(tmp_path / "photos"))
    constant = ScheduleConfig("constant")
    train(
        model,
        loss,
        data,
        optimizer=SETTINGS,
        schedule=constant,
        settings=settings,
        folder=tmp_path / "run",
        device="cpu",
    )
    one, other = (torch.load(ended / f"mining-{rank}.pt") for rank in range(2))
    assert same(one["model"], other["model"])
    assert all(torch.allclose(one["model"][name], tensor, atol=1e-6) for name, tensor in model.state_dict().items())


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    codes, said = start(folder, "bad loss", "bad image", "late")
    assert codes == [0, 0], f"a process hangs, or was killed: {said}"
    return folder


@pytest.mark.slow
@loop_over(
    "what, message",
    [
        ("bad loss", "the loss was nan on process 1 of 2 at step 3, in epoch 1: the batch is in "),
        ("bad image", "the embeddings were not finite on process 1 of 2 at step 2, in epoch 1: the batch is in "),
        ("late", "the loss was not finite on process 1 of 2 at step 3, in epoch 1: the batch is in "),
    ],
)
def test_a_number_that_is_none_on_one_process(broken, what, message):
    """Both stop at the same step and say whose it was; the batch is that process's own."""
    errors = [torch.load(broken / f"{what}-{rank}.pt")["error"] for rank in range(2)]
    assert errors[0] == errors[1]
    assert errors[0].startswith(message + str(broken / what / "not-finite-1.safetensors"))
    assert [each.name for each in (broken / what).glob("not-finite*")] == ["not-finite-1.safetensors"]
    [line] = Run(broken / what).metrics("end")
    assert (line["reason"], line["message"]) == ("not finite", errors[0])
    if what != "late":
        step = 2 if what == "bad loss" else 1
        kept = load_file(broken / what / "not-finite-1.safetensors")
        assert torch.equal(kept["images"].nan_to_num(9.0), share(1, what)[step][0].nan_to_num(9.0))


@pytest.mark.slow
def test_records_are_written_once(ended):
    run = Run(ended / "plain")
    assert [line["step"] for line in run.metrics("train")] == [1, 2, 3, 4, 5, 6]
    assert [line["epoch"] for line in run.metrics("val")] == [0, 1, 2]
    assert len(run.metrics("end")) == 1


@pytest.mark.slow
def test_the_run_is_complete_for_every_process(ended):
    assert all(torch.load(ended / f"plain-{rank}.pt")["complete"] for rank in range(2))


@pytest.mark.slow
def test_a_signal_that_reaches_one_of_them(tmp_path):
    """Both stop after the same step, and what they left can be resumed."""
    codes, said = start(tmp_path, "stop", seconds=40.0)
    assert None not in codes, "a process hangs"
    assert all("KeyboardInterrupt" in (tmp_path / f"said-{rank}.txt").read_text() for rank in range(2)), said
    assert not Run(tmp_path / "stop").finished
