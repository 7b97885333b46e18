"""Mixed precision: what a training function can still do with a model and an optimizer that were prepared for it."""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from trainlib import session
from trainlib.torch import TorchCheckpoint, accelerate, backward, prepare_model, prepare_optimizer
from trainlib.torch._amp import Accelerator


class Outputs(NamedTuple):
    logits: torch.Tensor
    labels: torch.Tensor


@dataclass
class Record:
    logits: torch.Tensor
    name: str


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.computed_in: torch.dtype | None = None

    def forward(self, x: torch.Tensor) -> Any:
        y = self.layer(x)
        self.computed_in = y.dtype
        return y


class Nested(Network):
    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        labels = torch.arange(3)
        return y, [y, None], {"y": y, "labels": labels}, Outputs(y, labels), Record(y, "a"), y.double()


class WithOwnState(Network):
    """Leaves a part out of its pickle, and makes it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: Any = lambda: None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "cache": "made anew"})


@pytest.fixture
def in_mixed_precision(as_rank):
    as_rank()
    accelerate(amp=True)


@pytest.fixture
def scaler(as_rank) -> torch.amp.GradScaler:
    """A scaler as on a GPU. This one works on a CPU."""
    as_rank()
    made = torch.amp.GradScaler("cpu", init_scale=1024.0)
    session.current("test").accelerator = Accelerator(made)  # type: ignore[attr-defined]
    return made


def test_a_model_computes_in_mixed_precision_and_its_outputs_are_float32(in_mixed_precision):
    model = prepare_model(Network())
    assert model(torch.ones(3, 4)).dtype == torch.float32
    assert model.computed_in == torch.bfloat16
    model(torch.ones(3, 4)).mean().backward()
    assert model.layer.weight.grad.dtype == torch.float32


def test_outputs_of_any_shape_are_float32_and_other_types_stay(in_mixed_precision):
    single, listed, by_name, named, record, double = prepare_model(Nested())(torch.ones(3, 4))
    for output in (single, listed[0], by_name["y"], named.logits, record.logits):
        assert output.dtype == torch.float32
    assert listed[1] is None
    assert record.name == "a"
    assert isinstance(named, Outputs)
    assert isinstance(record, Record)
    assert by_name["labels"].dtype == named.labels.dtype == torch.int64
    assert double.dtype == torch.float64


@pytest.mark.parametrize("kind", [Network, WithOwnState])
def test_a_prepared_model_is_saved_whole_as_if_it_was_not_prepared(in_mixed_precision, kind):
    model = prepare_model(kind())
    file = io.BytesIO()
    torch.save(model, file)
    assert b"trainlib.torch" not in file.getvalue()  # whoever loads it needs no trainlib
    loaded = torch.load(io.BytesIO(file.getvalue()), weights_only=False)

    assert torch.equal(loaded.layer.weight, model.layer.weight)
    assert getattr(loaded, "cache", "made anew") == "made anew"
    loaded(torch.ones(3, 4))
    assert loaded.computed_in == torch.float32
    model(torch.ones(3, 4))
    assert model.computed_in == torch.bfloat16  # it still trains as before

    with torch.no_grad():
        assert torch.equal(TorchCheckpoint.from_model(model).get_model()(torch.ones(1, 4)), loaded(torch.ones(1, 4)))


def negated(x: torch.Tensor) -> torch.Tensor:
    return -x


def test_a_forward_that_somebody_else_has_put_in_place_is_kept(in_mixed_precision):
    model = Network()
    model.forward = negated  # type: ignore[method-assign]
    file = io.BytesIO()
    torch.save(copy.deepcopy(prepare_model(model)), file)
    assert torch.load(io.BytesIO(file.getvalue()), weights_only=False)(torch.ones(1)).item() == -1.0


def test_a_model_that_was_saved_whole_can_be_prepared_again(in_mixed_precision):
    file = io.BytesIO()
    torch.save(prepare_model(Network()), file)
    model = prepare_model(torch.load(io.BytesIO(file.getvalue()), weights_only=False))
    model(torch.ones(3, 4))
    assert model.computed_in == torch.bfloat16
    torch.save(model, io.BytesIO())


def test_a_copy_of_a_prepared_model_computes_in_mixed_precision_with_its_own_weights(in_mixed_precision):
    model = prepare_model(Network())
    average = copy.deepcopy(model)
    with torch.no_grad():
        average.layer.weight.fill_(2.0)
        average.layer.bias.fill_(0.0)
    assert average(torch.ones(1, 4)).item() == 8.0
    assert average.computed_in == torch.bfloat16


def test_a_prepared_optimizer_is_an_optimizer_for_schedulers_hooks_and_checkpoints(scaler):
    model = torch.nn.Linear(2, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    optimizer = prepare_optimizer(inner)
    assert isinstance(optimizer, torch.optim.Optimizer)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    steps: list[Any] = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))

    before = model.weight.detach().clone()
    loss = model(torch.ones(1, 2)).sum()
    backward(loss)
    assert model.weight.grad.tolist() == [[1024.0, 1024.0]]  # scaled
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()

    assert torch.allclose(before - model.weight, torch.tensor([[0.5, 0.5]]))
    assert steps == [1]
    assert model.weight.grad is None
    assert optimizer.param_groups[0]["lr"] == inner.param_groups[0]["lr"] == pytest.approx(0.05)
    assert optimizer.state_dict().keys() == inner.state_dict().keys()
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    assert len(inner.param_groups) == 2
    assert "SGD" in repr(optimizer)

    other = prepare_optimizer(torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=1.0, momentum=0.9))
    other.load_state_dict({**inner.state_dict(), "param_groups": inner.state_dict()["param_groups"][:1]})
    assert other.param_groups[0]["lr"] == pytest.approx(0.05)
    assert copy.deepcopy(optimizer).param_groups[0]["lr"] == pytest.approx(0.05)


def test_a_step_with_gradients_that_overflowed_is_left_out(scaler):
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = prepare_optimizer(torch.optim.SGD([weight], lr=0.5))
    backward(weight.sum() * float("inf"))
    optimizer.step()
    assert weight.item() == 1.0
    assert scaler.get_scale() == 512.0


def test_a_closure_is_refused_where_gradients_are_scaled(scaler):
    optimizer = prepare_optimizer(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5))
    with pytest.raises(ValueError, match=r"call backward\(loss\).*then step\(\) without"):
        optimizer.step(lambda: torch.zeros(1))


def test_without_mixed_precision_nothing_is_wrapped(as_rank):
    as_rank()
    model, optimizer = Network(), torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    assert prepare_model(model) is model
    assert "forward" not in vars(model)
    assert prepare_optimizer(optimizer) is optimizer
