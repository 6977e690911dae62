"""What is recorded, when, and for how long: the bookkeeping of CUDA graphs, proved with a recorder that needs no GPU."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from likewise.engines import graphs
from likewise.engines.graphs import Graphs
from likewise.engines.recorder import CudaRecorder
from tests.engines.fake_recorder import FakeRecorder, Launches, Owner, leaf


def plain(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).square().sum().sqrt() * w.exp().mean()


class Caller:
    """A function and the graphs that compute it; counts how often it is computed plainly."""

    def __init__(self, compute=plain, recorder: FakeRecorder | None = None, **options) -> None:
        self.compute, self.recorder, self.owner = compute, recorder or FakeRecorder(), Owner()
        self.graphs = Graphs(self.recorder, **({"after": 1} | options))
        self.plainly = self.prepared = 0

    def prepare(self):
        self.prepared += 1
        return self.compute

    def __call__(self, *tensors: Tensor, key: object = "key", owner: object = None) -> Tensor:
        value = self.graphs.call(owner or self.owner, key, self.prepare, tensors)
        if value is None:
            self.plainly += 1
            return self.compute(*tensors)
        return value

    def warm(self, *tensors: Tensor, **options) -> None:
        """The first call is plain and the second one records."""
        for _ in range(2):
            self(*tensors, **options)
        self.plainly = 0


def outcome(value: Tensor, *leaves: Tensor, **options) -> list[Tensor]:
    return [value.detach(), *torch.autograd.grad(value, leaves, **options)]


def same(found: list[Tensor], expected: list[Tensor]) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


X, W = leaf(5, 3), leaf(3, 2, seed=1)


# ------------------------------------------------------------------------------------------------ values


def test_the_second_call_records_and_others_replay() -> None:
    call = Caller()
    for step in range(5):
        x, w = leaf(5, 3, seed=step), leaf(3, 2, seed=10 + step)
        same(outcome(call(x, w), x, w), outcome(plain(x, w), x, w))
        assert call.recorder.captures == (step > 0)
    assert (call.plainly, call.prepared, call.recorder.replays) == (1, 1, 4)


def test_rare_shapes_are_not_recorded() -> None:
    call = Caller(after=4)
    for step in range(6):
        call(X, W)
        assert call.recorder.captures == (step >= 4)
    assert Graphs(FakeRecorder()).after == graphs.AFTER


def test_several_calls_are_alive_before_a_backward() -> None:
    call = Caller()
    call.warm(X, W)
    batches = [(leaf(5, 3, seed=step), leaf(3, 2, seed=9 - step)) for step in range(4)]
    values = [call(x, w) for x, w in batches]
    total = sum((step + 1.0) * value for step, value in enumerate(values))
    total.backward()
    for step, ((x, w), value) in enumerate(zip(batches, values, strict=True)):
        expected = outcome(plain(x, w), x, w)
        same([value.detach(), x.grad / (step + 1.0), w.grad / (step + 1.0)], expected)
    assert call.plainly == 0


def test_backward_twice() -> None:
    call = Caller()
    call.warm(X, W)
    value = call(X, W)
    first = torch.autograd.grad(value, [X, W], retain_graph=True)
    call(leaf(5, 3, seed=3), W)
    second = torch.autograd.grad(value, [X, W], torch.tensor(-2.0))
    same([-2.0 * each for each in first], list(second))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(value, [X, W])


def test_a_gradient_goes_on_into_the_network() -> None:
    call = Caller()
    call.warm(X * 1.0, W)
    found = outcome(call(X.tanh(), W).exp(), X, W)
    same(found, outcome(plain(X.tanh(), W).exp(), X, W))
    assert call.plainly == 0


def test_inputs_of_any_layout_and_twice() -> None:
    call = Caller(lambda x, y: (x * y).sum() + x.square().sum())
    wide = leaf(6, 10)
    for x in (wide[:, ::2], wide[1:, :5].T.contiguous().T, wide[0].expand(6, 10)[:, :5]):
        for _ in range(3):
            same(outcome(call(x, x), wide), outcome(call.compute(x, x), wide))


def test_an_input_that_is_not_used_has_no_gradient() -> None:
    call = Caller(lambda x, w: x.square().sum())
    call.warm(X, W)
    _, unused = torch.autograd.grad(call(X, W), [X, W], allow_unused=True)
    assert unused is None
    assert call.plainly == 0


def test_inputs_that_change_after_the_call() -> None:
    """The gradient is that of the call; a second derivative there would be silently wrong, and is refused."""
    call = Caller()
    call.warm(X, W)
    x, w = leaf(5, 3, seed=4), leaf(3, 2, seed=5)
    expected, value = outcome(plain(x, w), x, w), call(x, w)
    with torch.no_grad():
        x.mul_(3.0)
        w.zero_()
    same(outcome(value, x, w, retain_graph=True), expected)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        torch.autograd.grad(value, x, create_graph=True)
    assert "\n" not in str(caught.value)


def test_results_have_memory_of_their_own() -> None:
    """Whoever changes a value or a gradient changes neither a later one nor an earlier one."""
    call = Caller()
    call.warm(X, W)
    expected, value = outcome(plain(X, W), X, W), call(X, W)
    for _ in range(3):
        found = outcome(value, X, W, retain_graph=True)
        same(found, expected)
        for each in found[1:]:
            each.zero_()
    value.detach().fill_(7.0)
    kept = outcome(call(X, W), X, W)
    call(leaf(5, 3, seed=3), W)
    same(kept, expected)


# ------------------------------------------------------------------------------------------------ lent gradients


def copies(call: Caller, *tensors: Tensor) -> int:
    """How many gradients a call copies that it lent to another one."""
    with Launches() as launches:
        call(*tensors)
    return launches.counts["clone"] - 1  # the value


def test_a_training_step_copies_no_gradient() -> None:
    call = Caller()
    call.warm(X, W)
    for _ in range(3):
        with Launches() as launches:
            torch.autograd.grad(call(X, W), [X, W])
        del launches.counts["detach"]
        assert launches.counts == {"copy_": 2, "clone": 1, "ones_like": 1, "mul": 2}


def test_gradients_are_copied_if_they_may_be_needed() -> None:
    call = Caller()
    call.warm(X, W)
    x = leaf(5, 3, seed=3)
    value = call(X, W)
    assert copies(call, x, W) == 2
    assert copies(call, x, W) == 0  # nothing holds the value of the call before
    again = call(X, W)
    torch.autograd.grad(again, X, retain_graph=True)
    assert copies(call, x, W) == 2
    values = [value, again, call(X, W)]
    for each in values:
        same(outcome(each, X, W), outcome(plain(X, W), X, W))
    assert copies(call, x, W) == 0  # the values are held, but cannot be differentiated again


def test_a_differentiated_value_holds_no_memory() -> None:
    call = Caller()
    call.warm(X * 1.0, W)
    x = X * 1.0
    inputs, value = weakref.ref(x), call(x, W)
    del x
    call(X * 2.0, W)
    gradients = [weakref.ref(each) for each in value.grad_fn.lent.tensors]
    torch.autograd.grad(value, [X, W])
    assert [each() for each in (inputs, *gradients)] == [None] * 3


def test_two_losses_in_turns() -> None:
    """The gradients of one are overwritten by the other: they share memory."""
    call, owners = Caller(), (Owner(), Owner())
    for owner in owners:
        call.warm(X, W, owner=owner)
    for order in ((0, 1), (1, 0)):
        values = [call((step + 1.0) * X, W, owner=owner) for step, owner in enumerate(owners)]
        for step in order:
            same(outcome(values[step], X, W), outcome(plain((step + 1.0) * X, W), X, W))
    assert call.plainly == 0


def test_gradients_accumulate() -> None:
    call = Caller()
    call.warm(X, W)
    found = []
    for compute in (call, plain):
        x, w = leaf(5, 3, seed=6), leaf(3, 2, seed=7)
        for step in range(3):
            compute(x * (step + 1.0), w).backward()
            (compute(x, w) + compute(2.0 * x, w)).backward()
        found.append([x.grad, w.grad])
    same(*found)
    assert call.plainly == 0


def test_a_capture_before_the_backward_pass() -> None:
    call, expected = Caller(), outcome(plain(X, W), X, W)
    call.warm(X, W)
    value = call(X, W)
    call.warm(X[:3], W)
    assert call.recorder.captures == 2
    same(outcome(value, X, W), expected)
    value, call.recorder.fails = call(X, W), True
    call.warm(X[:2], W)
    same(outcome(value, X, W), expected)


@pytest.mark.parametrize("drop", ["its owner", "all", "for others"])
def test_a_recording_that_is_dropped_before_the_backward_pass(drop: str) -> None:
    call, owner = Caller(most=2), Owner()
    call.warm(X, W)
    call.warm(X, W, owner=owner)
    value = call(X, W, owner=owner)
    if drop == "its owner":
        del owner
        gc.collect()
    elif drop == "all":
        call.graphs.clear()
    else:
        call.warm(X[:2], W)
        call.warm(X[:3], W)
    for rows in (5, 4):
        call.warm(X[:rows], W)
    same(outcome(value, X, W), outcome(plain(X, W), X, W))


def test_a_call_during_a_backward_pass_of_another_thread() -> None:
    """A replay would overwrite the gradients that the other thread is about to read: the call is computed plainly."""
    call = Caller()
    call.warm(X, W)
    value = call(X, W)
    with value.grad_fn.lent.lock:
        for rows in (5, 4):  # no replay, and no capture
            for _ in range(2):
                same([call(X[:rows], W)], [plain(X[:rows], W)])
    assert (call.plainly, call.recorder.captures) == (4, 1)
    assert call.graphs.replayed == call.recorder.replays
    same(outcome(value, X, W), outcome(plain(X, W), X, W))
    call.warm(X[:4], W)
    assert call.recorder.captures == 2


def test_a_backward_pass_during_a_call_of_another_thread() -> None:
    """It waits until its gradients are copied."""
    call, found = Caller(), []
    call.warm(X, W)
    value = call(X, W)
    thread = threading.Thread(target=lambda: found.extend(outcome(value, X, W)))
    with value.grad_fn.lent.lock:
        thread.start()
        thread.join(0.1)
        assert not found
    thread.join(10.0)
    same(found, outcome(plain(X, W), X, W))


# ------------------------------------------------------------------------------------------------ derivatives


def test_second_derivatives_are_exact() -> None:
    call = Caller()
    x, w = leaf(4, 3, dtype=torch.float64), leaf(3, 2, seed=1, dtype=torch.float64)
    call.warm(x, w)
    assert torch.autograd.gradcheck(call, (x, w))
    assert torch.autograd.gradgradcheck(call, (x, w))
    assert call.plainly == 0


def test_a_penalty_on_the_gradient_trains_the_network() -> None:
    call = Caller()
    call.warm(X * 1.0, W)
    found = []
    for compute in (call, plain):
        x = leaf(5, 3, seed=8)
        value = compute(x.sin(), W)
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        found.append(outcome(value + slope.square().sum(), x, W))
    same(*found)
    assert call.plainly == 0


def test_a_second_derivative_outlives_its_recording() -> None:
    call = Caller()
    call.warm(X, W)
    value = call(X, W)
    call.graphs.clear()
    (slope,) = torch.autograd.grad(value, X, create_graph=True)
    (expected,) = torch.autograd.grad(plain(X, W), X, create_graph=True)
    same(outcome(slope.sum(), X, W), outcome(expected.sum(), X, W))


def test_transforms_take_the_plain_path() -> None:
    call = Caller()
    call.warm(X, W)
    call.warm(X.detach(), W.detach())
    x, w = X.detach(), W.detach()
    same([torch.func.grad(call)(x, w)], [torch.func.grad(plain)(x, w)])
    same([torch.func.vmap(call, (0, None))(x[:, None], w)], [torch.func.vmap(plain, (0, None))(x[:, None], w)])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        found, expected = (forward_ad.unpack_dual(each(dual, w)).tangent for each in (call, plain))
        same([found], [expected])
    assert call.plainly == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_a_compiler_and_a_tracer_take_the_plain_path() -> None:
    call = Caller()
    call.warm(X, W)
    assert torch.equal(torch.compile(call, backend="eager", fullgraph=True)(X, W), plain(X, W))
    traced = torch.jit.trace(lambda x, w: call(x, w), (X.detach(), W.detach()))
    assert torch.equal(traced(2.0 * X, W), plain(2.0 * X, W))
    assert call.recorder.replays == 1


@pytest.mark.parametrize("reentrant", [True, False])
def test_inside_a_checkpoint(reentrant: bool) -> None:
    call = Caller(after=graphs.AFTER)
    for step in range(6):
        x, w = leaf(5, 3, seed=step), leaf(3, 2, seed=1)
        value = checkpoint(lambda x, w: call(x.sin(), w), x, w, use_reentrant=reentrant)
        same(outcome(value, x, w) if not reentrant else backward(value, x, w), outcome(plain(x.sin(), w), x, w))
    assert call.recorder.captures == (1 if not reentrant else 2)  # a reentrant one calls without a gradient first


def backward(value: Tensor, *leaves: Tensor) -> list[Tensor]:
    value.backward()
    return [value.detach(), *[each.grad for each in leaves]]


def test_saved_tensors_may_be_kept_elsewhere() -> None:
    call, packed = Caller(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
        call(X, W)
        plainly, packed[:] = len(packed), []
        value = call(X, W)
    # a recording saves nothing: its gradients stay where they are
    assert (plainly > 2, len(packed), call.recorder.captures) == (True, 0, 1)
    same(outcome(value, X, W), outcome(plain(X, W), X, W))


def test_anomalies_are_looked_for_plainly() -> None:
    call = Caller()
    call.warm(X, W)
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        call(X, W)
    assert call.plainly == 1


# ------------------------------------------------------------------------------------------------ keys


def test_without_a_gradient() -> None:
    call = Caller()
    expected = plain(X, W).detach()
    with torch.no_grad():
        for _ in range(3):
            value = call(X, W)
            assert not value.requires_grad
            assert torch.equal(value, expected)
    with torch.inference_mode():
        assert torch.equal(call(X, W), expected)
    assert call.recorder.captures == 1
    call.warm(X, W)  # with a gradient it is another recording
    assert call(X, W).requires_grad
    assert call.recorder.captures == 2


def test_a_recording_that_is_made_in_inference_mode_serves_outside() -> None:
    call = Caller()
    x, w = X.detach(), W.detach()
    with torch.inference_mode():
        call.warm(x, w)
    assert torch.equal(call(2.0 * x, w), plain(2.0 * x, w))
    assert (call.plainly, call.recorder.captures) == (0, 1)


def test_who_wants_a_gradient_may_change() -> None:
    call = Caller()
    for x, w in ((X, W), (X.detach(), W), (X, W.detach()), (X, W), (X.detach(), W)):
        for _ in range(3):
            wanted = [each for each in (x, w) if each.requires_grad]
            same(outcome(call(x, w), *wanted), outcome(plain(x, w), *wanted))
    assert call.recorder.captures == 3


def test_whatever_else_counts_is_another_recording() -> None:
    call = Caller()
    captures = 0

    def recorded(*tensors: Tensor, **options) -> None:
        nonlocal captures
        call.warm(*tensors, **options)
        captures += 1
        assert call.recorder.captures == captures
        call(*tensors, **options)
        assert (call.recorder.captures, call.plainly) == (captures, 0)

    recorded(X, W)
    recorded(X[:4], W)
    recorded(X.double(), W.double())
    recorded(X.bfloat16(), W.bfloat16())
    recorded(X, W, key="another")
    recorded(X, W, owner=torch.nn.Identity())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        recorded(X, W)
    before = torch.get_float32_matmul_precision()
    for change, back in (
        (lambda: torch.set_float32_matmul_precision("high"), lambda: torch.set_float32_matmul_precision(before)),
        (lambda: torch.use_deterministic_algorithms(True), lambda: torch.use_deterministic_algorithms(False)),
        (lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
        (lambda: vars(call.recorder).update(current="other"), lambda: vars(call.recorder).update(current="a stream")),
    ):
        change()
        try:
            recorded(X, W)
        finally:
            back()
    call(X, W)  # and the first is still there
    assert call.recorder.captures == captures


def test_autocast_is_that_of_the_call() -> None:
    call = Caller(lambda x, w: (x @ w).float().sum())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = call.compute(X, W)
        call.warm(X, W)
        value = call(X, W)
    assert torch.equal(value, expected)
    assert call.plainly == 0
    (slope,) = torch.autograd.grad(value, X, create_graph=True)  # outside of autocast, as torch does it
    torch.testing.assert_close(slope, torch.autograd.grad(expected, X)[0])


# ------------------------------------------------------------------------------------------------ the plain path


def test_random_numbers_are_drawn_plainly() -> None:
    call = Caller(lambda x: (x * torch.rand_like(x)).sum())
    torch.manual_seed(0)
    expected = [call.compute(X) for _ in range(4)]
    torch.manual_seed(0)
    assert [call(X).item() for _ in range(4)] == [each.item() for each in expected]
    assert (call.plainly, call.prepared, call.recorder.captures) == (4, 1, 0)


def test_a_state_is_kept_plainly() -> None:
    call = Caller(lambda x, state: (x * state.add_(1.0)).sum())
    state = torch.zeros(3)
    for step in range(4):
        call(X, state)
        assert state.tolist() == [step + 1.0] * 3
    assert call.recorder.captures == 0


READS = {
    "item": lambda x: x.sum() * x.max().item(),
    "bool": lambda x: x.sum() if x.sum() > 0 else -x.sum(),
    "float": lambda x: x.sum() * float(x.detach().max()),
    "tolist": lambda x: x.sum() * x.detach()[0].tolist()[0],
    "numpy": lambda x: x.sum() * x.detach().numpy().max().item(),
    "nonzero": lambda x: x[x.detach().abs().sum(dim=1).nonzero()].sum(),
    "mask": lambda x: x[x.detach() > 0.0].sum(),
    "where": lambda x: x[torch.where(x.detach()[:, 0] > 0.0)].sum(),
    "unique": lambda x: x.sum() * len(torch.unique(x.detach())),
    "repeats": lambda x: x.repeat_interleave(x.detach().abs().ceil()[:, 0].long(), dim=0).sum(),
    "a copy": lambda x: x.sum() * x.to("meta").shape[0],
    "a new tensor": lambda x: x.sum() * torch.tensor([2.0], device="meta").shape[0],
}


@pytest.mark.parametrize("name", READS)
def test_what_waits_for_the_device_is_not_captured(name: str) -> None:
    call = Caller(READS[name])
    for seed in range(3):
        call.graphs.call(call.owner, "key", call.prepare, [leaf(5, 3, seed=seed)])
    assert call.recorder.captures == 0
    assert call.recorder.pools[0].renewed == 0  # it was not even tried


def test_what_does_not_wait_is_captured() -> None:
    def compute(x: Tensor) -> Tensor:
        kept = torch.where(x > 0.0, x, 0.0)
        kept = kept.repeat_interleave(2, dim=0)[::2].to(torch.float64)
        written = torch.zeros_like(x)
        written[x > 1.0] = 2.0
        return (kept[torch.arange(5)] * written[:, [0, 1, 2]]).sum() + x.sum() * torch.tensor(2.0)

    call = Caller(compute)
    call.warm(X)
    same(outcome(call(X), X), outcome(compute(X), X))
    assert call.recorder.captures == 1


def test_a_failed_capture_is_not_tried_again() -> None:
    call = Caller()
    call.warm(X, W)
    call.recorder.fails = True
    for _ in range(4):
        same([call(X[:3], W)], [plain(X[:3], W)])
    assert call.prepared == 2
    assert call.recorder.pools[0].renewed == 1
    call.recorder.fails = False
    call(X, W)  # the others live
    assert call.recorder.captures == 1


def test_errors_are_those_of_the_plain_path() -> None:
    def compute(x: Tensor) -> Tensor:
        raise ValueError("embeddings must be finite")

    call = Caller(compute)
    for _ in range(3):
        with pytest.raises(ValueError, match="embeddings must be finite"):
            call(X)
    assert call.recorder.captures == 0


def test_several_values_have_no_common_gradient() -> None:
    call = Caller(lambda x: x.square().sum(dim=1))
    for _ in range(3):
        assert call(X).shape == (5,)
    assert call.recorder.captures == 0
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(call(X), call.compute(X))
    assert call.recorder.captures == 1


def test_small_gradients_keep_their_scale() -> None:
    """A gradient that float16 cannot hold before a loss scale is applied to it."""
    call = Caller(lambda x: 1e-9 * x.float().sum())
    x = X.detach().half().requires_grad_()
    for _ in range(3):
        (slope,) = torch.autograd.grad(call(x) * 65536.0, x)
        assert (slope != 0).all()
    assert call.recorder.captures == 0
    assert call(x.detach()) is not None


def test_what_cannot_be_recorded_is_computed() -> None:
    call = Caller()
    call.warm(X, W)
    call.recorder.busy = True
    call(X, W)
    call.recorder.busy = False
    assert call.plainly == 1

    class Marked(Tensor):
        pass

    assert call.graphs.call(call.owner, "key", call.prepare, [X.as_subclass(Marked), W]) is None
    assert call.graphs.call(call.owner, "key", call.prepare, [X, W.to("meta")]) is None
    assert call.graphs.call(call.owner, "key", call.prepare, [X, W.detach().to_sparse().requires_grad_()]) is None
    nothing = Graphs(FakeRecorder(), after=0)
    assert [nothing.call(call.owner, "key", lambda: None, [X]) for _ in range(3)] == [None] * 3


def test_on_a_cpu_nothing_is_recorded() -> None:
    assert not CudaRecorder().accepts(torch.device("cpu"))
    for _ in range(3):
        assert graphs.call(Owner(), "key", lambda: torch.sum, [X]) is None
    assert graphs.held_bytes() == 0


# ------------------------------------------------------------------------------------------------ how long


def test_a_recording_is_dropped_with_its_owner() -> None:
    call, owner = Caller(), Owner()
    call.warm(X, W, owner=owner)
    gone = weakref.ref(owner)
    (held,) = call.graphs._at((torch.device("cpu"), "a stream"))
    assert call.graphs.held_bytes() == X.nbytes + W.nbytes
    recording = weakref.ref(held[2])
    del owner, held
    gc.collect()
    assert gone() is None
    assert recording() is None
    assert call.graphs.held_bytes() == 0


def test_a_recording_is_not_kept_by_its_results() -> None:
    call = Caller()
    call.warm(X, W)
    value = call(X, W)
    (held,) = call.graphs._at((torch.device("cpu"), "a stream"))
    recording = weakref.ref(held[2])
    del held
    call.graphs.clear()
    gc.collect()
    assert recording() is None
    same(outcome(value, X, W), outcome(plain(X, W), X, W))


def test_the_least_recently_used_is_dropped() -> None:
    call = Caller(most=2)
    for rows in (1, 2):
        call.warm(X[:rows], W)
    call(X[:1], W)
    call.warm(X[:3], W)
    for rows, captures in ((1, 3), (3, 3), (2, 3)):
        call(X[:rows], W)
        assert call.recorder.captures == captures
    assert call.plainly == 1  # two rows: dropped, and seen for the first time again
    assert len(call.graphs._at((torch.device("cpu"), "a stream"))) == 2


def test_memory_is_bounded() -> None:
    recorder = FakeRecorder(bytes_each=1000)
    call = Caller(recorder=recorder, budget=3500)
    highest = 0
    for rows in (1, 2, 3, 4, 5, 1, 2, 3):
        for _ in range(4):
            x = X[:rows]
            same(outcome(call(x, W), X, W), outcome(plain(x, W), X, W))
            highest = max(highest, call.graphs.held_bytes())
    assert 3000 < highest <= 3500
    assert recorder.pools[0].renewed > 0


def test_a_graph_that_is_too_large_alone() -> None:
    call = Caller(recorder=FakeRecorder(bytes_each=1000), budget=900)
    for _ in range(5):
        call(X, W)
    assert (call.plainly, call.recorder.captures, call.graphs.held_bytes()) == (5, 1, 0)


def test_memory_is_given_back_with_the_last_owner() -> None:
    call = Caller(recorder=FakeRecorder(bytes_each=1000))
    for _ in range(3):
        owner = Owner()
        call.warm(X, W, owner=owner)
        assert call.graphs.held_bytes() == 1000 + X.nbytes + W.nbytes
        del owner
        gc.collect()
        assert call.graphs.held_bytes() == 0
    assert call.recorder.pools[0].renewed == 2  # torch does not open a pool again


def test_streams_that_are_not_used_any_more() -> None:
    call = Caller()
    for stream in range(2 * graphs.STREAMS):
        call.recorder.current, owner = stream, Owner()
        call.warm(X, W, owner=owner)
        del owner
        gc.collect()
    assert call.recorder.captures == 2 * graphs.STREAMS
    assert len(call.graphs._pools) <= graphs.STREAMS


def test_few_streams_have_graphs() -> None:
    call = Caller()
    for stream in range(2 * graphs.STREAMS):
        call.recorder.current = stream
        call.warm(X, W)
        same([call(X, W)], [plain(X, W)])
    assert call.recorder.captures == len(call.recorder.pools) == graphs.STREAMS


def test_batches_that_all_differ_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "FREE", 3)
    monkeypatch.setattr(graphs, "WORTH", 10)
    call, x = Caller(), leaf(40, 3)
    for rows in range(1, 30):
        call.warm(x[:rows], W)
    assert call.recorder.captures == 3
    for _ in range(20):
        call(x[:1], W)  # pays for more
    for rows in range(1, 30):
        call(x[:rows], W)
    assert 3 < call.recorder.captures <= 3 + call.recorder.replays // 10


def test_few_keys_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "KEYS", 5)
    call = Caller()
    call.warm(X, W)
    for key in range(100):
        call(X, W, key=key)
    assert len(call.graphs._known[call.owner]) <= 6
    call(X, W)
    assert call.recorder.captures == 1


# ------------------------------------------------------------------------------------------------ threads


def test_a_second_thread_does_not_wait() -> None:
    call = Caller()
    call.warm(X, W)
    found = []

    def inside(x: Tensor) -> Tensor:
        thread = threading.Thread(target=lambda: found.append(call(X, W)))
        thread.start()
        thread.join(10.0)
        return x.sum()

    for _ in range(2):
        value = call.graphs.call(call.owner, "other", lambda: inside, [X])
    assert value is not None
    assert call.plainly > 0
    same(found, [plain(X, W)] * len(found))


def test_threads_do_not_mix() -> None:
    call = Caller()
    call.warm(X, W)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for step in range(100):
            x = leaf(5, 3, seed=1000 * seed + step)
            found, expected = outcome(call(x, W), x), outcome(plain(x, W), x)
            if not all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert call.recorder.replays > 1
