"""How kernels are launched: by addresses that are filled in, below Triton's own bookkeeping, on the right device."""

from __future__ import annotations

import ctypes
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import losses, miners
from likewise.engines.triton.program import Launcher, direct, on
from likewise.engines.triton.script import Place, Room, Script, Step, Value
from tests.engines.triton_common import WHOLE, batch, check, declared, program, take
from tests.engines.triton_inputs import BY_SIDE, layouts

# ------------------------------------------------------------------------------------------------ Triton's inside


class Compiled:
    """A compiled kernel as Triton has it, which writes down how it is launched."""

    function = 12345
    packed_metadata = (4, 1, 0)

    def __init__(self, **attributes: Any) -> None:
        self.calls: list[tuple[str, Any]] = []
        launcher = {"launch_cooperative_grid": False, "launch_pdl": True, "global_scratch_size": 0}
        launcher |= {"profile_scratch_size": 0, "launch": lambda *args: self.calls.append(("short", args))}
        self.run = SimpleNamespace(**(launcher | attributes))

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *args: self.calls.append(("plain", (grid, *args)))


NEW = {"arg_annotations": ["annotations"], "kernel_signature": b"signature"}


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    chains = SimpleNamespace(launch_enter_hook=SimpleNamespace(calls=[]), launch_exit_hook=SimpleNamespace(calls=[]))
    monkeypatch.setattr(program.triton, "knobs", SimpleNamespace(runtime=chains))
    return chains


def test_the_forms_of_the_versions(monkeypatch: pytest.MonkeyPatch, hooks: SimpleNamespace) -> None:
    nothing = (None, None, None)
    head = (7, 1, 1, 99, Compiled.function, False, True)
    forms = {
        "3.6.0": ({}, (*head, None, None, Compiled.packed_metadata, *nothing, "a", 2)),
        "3.7.1": (NEW, (*head, Compiled.packed_metadata, *nothing, None, None, *NEW.values(), ["a", 2])),
        "3.9.0": (NEW, (*head, Compiled.packed_metadata, *nothing, None, None, *NEW.values(), ["a", 2])),
    }
    for version, (attributes, expected) in forms.items():
        monkeypatch.setattr(program.triton, "__version__", version)
        compiled = Compiled(**attributes)
        direct(compiled)(7, 99, ["a", 2])
        assert compiled.calls == [("short", expected)]


def test_anything_else_is_launched_plainly(monkeypatch: pytest.MonkeyPatch, hooks: SimpleNamespace) -> None:
    plain = [("plain", ((7, 1, 1), "a", 2))]
    strange = [
        ("3.5.1", {}),
        ("3.10.0", NEW),
        ("4.0.0+git", NEW),
        ("3.9.0", {}),
        ("3.6.0", {"global_scratch_size": 64}),
        ("3.9.0", NEW | {"profile_scratch_size": 64}),
        ("3.9.0", NEW | {"gsan_enabled": True}),
    ]
    for version, attributes in strange:
        monkeypatch.setattr(program.triton, "__version__", version)
        compiled = Compiled(**attributes)
        direct(compiled)(7, 99, ["a", 2])
        assert compiled.calls == plain, version
    for name in ("function", "packed_metadata"):
        compiled = Compiled(**NEW)
        setattr(compiled, name, None)
        direct(compiled)(7, 99, ["a", 2])
        assert compiled.calls == plain, name
    monkeypatch.setattr(program.triton, "knobs", None)
    direct(compiled := Compiled(**NEW))(7, 99, ["a", 2])
    assert compiled.calls == plain


def test_a_profiler_is_heard(monkeypatch: pytest.MonkeyPatch, hooks: SimpleNamespace) -> None:
    for version, attributes in (("3.6.0", {}), ("3.9.0", NEW)):
        monkeypatch.setattr(program.triton, "__version__", version)
        compiled = Compiled(**attributes)
        launch = direct(compiled)
        for chain in vars(hooks).values():
            launch(1, 0, [])
            chain.calls.append("listener")
            launch(1, 0, [])
            chain.calls.clear()
        assert [kind for kind, _ in compiled.calls] == ["short", "plain"] * 2


# ------------------------------------------------------------------------------------------------ addresses


def extent(tensor: Tensor) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def by_address(patch: pytest.MonkeyPatch) -> list[int]:
    """Let the interpreter take addresses, as compiled kernels do; how often it did."""
    made, taken = Launcher.first, []

    def first(self: Launcher, programs: int, arguments: Any, **options: Any) -> Any:
        made(self, programs, arguments, **options)
        kinds = [(x.dtype, extent(x)) if isinstance(x, Tensor) else None for x in arguments]

        def launch(programs: int, _stream: int, arguments: Any) -> None:
            taken.append(programs)
            given = []
            for kind, x in zip(kinds, arguments, strict=True):
                assert not isinstance(x, Place | Value | Tensor)
                if kind is not None:
                    memory = (ctypes.c_char * (kind[1] * kind[0].itemsize)).from_address(x)
                    x = torch.frombuffer(memory, dtype=kind[0])
                given.append(x)
            made(self, programs, given, **options)

        return launch

    patch.setattr(Launcher, "first", first)
    return taken


def test_a_script_fills_in(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Fake:
        def first(self, programs: int, arguments: Any, **options: Any) -> Any:
            seen.append(arguments)
            return lambda *args: seen.append(args)

    room = Room(1)
    room.take(5, torch.float32)
    second = room.take(3, torch.bfloat16)
    steps = [Step(Fake(), 3, (Place(0, 0, torch.int64), 7, Value(1), second, "constant"))]
    script = Script(steps)
    for start, values in ((0, [0.1, 0.2]), (10, [0.3, 0.4])):
        tensors = [torch.arange(4) + start, torch.zeros(room.bytes // 4)]
        script.run(tensors, values, 11)
        if start:
            assert seen[1] == (3, 11, [tensors[0].data_ptr(), 7, 0.4, tensors[1].data_ptr() + 64, "constant"])
        else:
            labels, seven, value, view, constant = seen[0]
            assert (labels is tensors[0], seven, value, constant) == (True, 7, 0.2, "constant")
            assert (view.dtype, view.data_ptr()) == (torch.bfloat16, tensors[1].data_ptr() + 64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_next_batch_of_a_kind(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch is run on tensors, the next on addresses; other numbers and other memory must be its own."""
    take(monkeypatch, "short")
    taken = by_address(monkeypatch)
    for seed, (margin, epsilon) in enumerate([(0.3, 0.1), (0.6, 0.1), (0.6, 0.4)]):
        taken.clear()
        embeddings, labels = batch(19, seed=seed)
        miner = miners.MultiSimilarityMiner(epsilon)
        make = partial(losses.MultiSimilarityLoss, 2.0, 5.0, margin, miner=miner)
        check(make, embeddings.to(dtype), labels)
        assert bool(taken) == (seed > 0)


def test_two_sides_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "short")
    taken = by_address(monkeypatch)
    for seed in range(2):
        (anchors, labels), (references, theirs) = batch(19, seed=seed), batch(23, seed=seed + 5)
        for similarity in ("dot", "euclidean", "snr"):
            make = partial(declared, BY_SIDE, similarity=similarity)
            check(make, [anchors, references], labels, reference_labels=theirs)
    assert taken


def test_other_layouts_are_other_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strides and addresses that do not load in whole vectors; each kind twice, in turn."""
    take(monkeypatch, "short")
    taken = by_address(monkeypatch)
    labels = batch(19, 6)[1]
    loss = declared(BY_SIDE, backend="triton")
    found = [(name, loss(x, labels), loss(x * 1.0, labels)) for name, x in [*layouts().items(), *layouts().items()]]
    assert taken
    assert all(torch.equal(a, found[0][1]) and torch.equal(b, found[0][1]) for _, a, b in found)


def test_kinds_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "short")
    monkeypatch.setattr(WHOLE, "RUNS", 3)
    embeddings, labels = batch(19)
    loss = losses.ContrastiveLoss(backend="triton")
    for m in range(2, 9):
        torch.testing.assert_close(
            loss(embeddings[:m], labels[:m]), losses.ContrastiveLoss(backend="dense")(embeddings[:m], labels[:m])
        )
    (known,) = WHOLE._LOSSES.values()
    assert len(known.runs) == 1  # of seven kinds three were forgotten twice
    assert len(known.plans) == 1


def test_without_a_gradient_nothing_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "short")
    embeddings, labels = batch(19)
    leaf, loss = embeddings.clone().requires_grad_(), losses.ContrastiveLoss(backend="triton")
    with torch.no_grad():
        loss(leaf, labels)
    (known,) = WHOLE._LOSSES.values()
    (run,) = known.runs.values()
    assert not run.sides
    assert not run.back.steps


# ------------------------------------------------------------------------------------------------ devices


def test_the_device_of_the_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert on(torch.device("cuda:0")) is on(torch.device("cpu"))
    other = on(torch.device("cuda:1"))
    assert isinstance(other, torch.cuda.device)
    assert other.idx == 1


def test_every_launch_is_on_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch of every way happens inside the guard."""
    inside: list[torch.device] = []

    class Guard:
        def __init__(self, device: torch.device) -> None:
            self.device = device

        def __enter__(self) -> None:
            inside.append(self.device)

        def __exit__(self, *_: object) -> None:
            inside.pop()

    launched, made = [], Launcher.first

    def first(self: Launcher, *args: Any, **options: Any) -> Any:
        launched.append(list(inside))
        return made(self, *args, **options)

    monkeypatch.setattr(Launcher, "first", first)
    monkeypatch.setattr(program, "on", Guard)
    monkeypatch.setattr(WHOLE, "on", Guard)
    for way in ("short", "sorted"):
        take(monkeypatch, way)
        embeddings, labels = batch(19)
        losses.MultiSimilarityLoss(backend="triton")(embeddings.requires_grad_(), labels).backward()
    assert launched
    assert all(devices == [torch.device("cpu")] for devices in launched)
