"""find_batch_size(): the largest batch that goes through, with nothing left behind; static_input(): one buffer for all
batches, in place of the old and the new one side by side."""
from __future__ import annotations

import copy
import functools
import gc
import random
import sys
import traceback
import types
from typing import Any, Callable, Iterable, Iterator

from . import _torch
from ._marks import progress

DEEPEST = 4  # helpers, containers and objects between a step and the model that it trains


def find_batch_size(step: Callable[[int], Any], start: int = 1, *, most: int = 1 << 20, steps: int = 2,
                    state: Iterable[Any] = ()) -> int:
    """The largest n up to `most` for which step(n) runs `steps` times in a row without running out of memory, by
    doubling from `start` and bisection; 0 if not even 1 does.

    step(n) makes its own batch of n and does what one training step does. Two steps, since the optimizer's state comes
    with the first and meets the activations only in the second. Modules, optimizers and whatever else has state_dict()
    are found where step refers to them; name others in `state`. Before each try and at the end these are put back as
    they were: parameters, buffers, gradients, optimizer state, random state (Python, numpy, torch on all devices), and
    memory to the byte. Needs a copy of that state on the CPU. Other errors of step are raised, after putting back.
    OOMs in here are neither recorded nor counted. Source: the step itself; nothing is estimated.
    Raises ValueError for sizes that make no sense, and ImportError without torch."""
    if start < 1 or most < start or steps < 1:
        raise ValueError(f"start={start}, most={most}, steps={steps}: 1 <= start <= most and steps >= 1")
    kept = _State([*state, *_with_state(step, set())])

    def fits(n: int) -> bool:
        kept.put_back()
        try:
            for _ in range(steps):
                step(n)
            return True
        except Exception as error:
            if not _torch.is_oom(error):
                raise
            traceback.clear_frames(error.__traceback__)
            return False

    progress.paused += 1
    try:
        fitting, failing, tried = 0, most + 1, start
        while failing - fitting > 1:
            if fits(tried):
                fitting = tried
            else:
                failing = tried
            tried = min(fitting * 2, most) if failing > most else (fitting + failing) // 2
        return fitting
    finally:
        progress.paused -= 1
        kept.put_back()


class _State:
    """A copy on the CPU of all that a step changes, and the way back: in place, so that no tensor moves."""

    def __init__(self, things: list[Any]) -> None:
        import torch
        modules = [each for each in things if isinstance(each, torch.nn.Module)]
        self._optimizers = [(each, [_without_params(group) for group in each.param_groups],
                             {p: {key: (value, _copy(value)) for key, value in state.items()}
                              for p, state in each.state.items()})
                            for each in things if isinstance(each, torch.optim.Optimizer)]
        self._others = [(each, copy.deepcopy(each.state_dict())) for each in things
                        if not isinstance(each, (torch.nn.Module, torch.optim.Optimizer))]
        tensors = [each for module in modules for each in (*module.parameters(), *module.buffers())]
        tensors += [p for optimizer, _, _ in self._optimizers for group in optimizer.param_groups
                    for p in group["params"]]
        self._tensors = [(each, _copy(each), _copy(each.grad)) for each in {id(each): each for each in tensors}.values()]
        self._modes = [(each, each.training) for module in modules for each in module.modules()]
        self._numpy: Any = getattr(sys.modules.get("numpy"), "random", None)
        cuda = _torch.cuda()
        self._random = (random.getstate(), torch.get_rng_state(), cuda.get_rng_state_all() if cuda else None,
                        self._numpy.get_state() if self._numpy else None)

    def put_back(self) -> None:
        import torch
        with torch.no_grad():
            for tensor, value, gradient in self._tensors:
                tensor.copy_(value)
                if gradient is None or tensor.grad is None:
                    tensor.grad = gradient if gradient is None else gradient.to(tensor.device)
                else:
                    tensor.grad.copy_(gradient)
            for optimizer, groups, states in self._optimizers:
                optimizer.state.clear()
                for p, state in states.items():
                    optimizer.state[p] = {key: _restored(*pair) for key, pair in state.items()}
                for group, values in zip(optimizer.param_groups, groups):
                    params = group["params"]
                    group.clear()
                    group.update(params=params, **values)
        for thing, state in self._others:
            thing.load_state_dict(copy.deepcopy(state))
        for module, mode in self._modes:
            module.training = mode
        python, cpu, cards, numpy = self._random
        random.setstate(python)
        torch.set_rng_state(cpu)
        if numpy is not None:
            self._numpy.set_state(numpy)
        cuda = _torch.cuda()
        if cuda is not None:
            gc.collect()
            if cards is not None:
                cuda.set_rng_state_all(cards)
            cuda.synchronize()
            cuda.empty_cache()


def _without_params(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}


def _copy(value: Any) -> Any:
    return value.detach().to("cpu", copy=True) if hasattr(value, "detach") else copy.deepcopy(value)


def _restored(live: Any, kept: Any) -> Any:
    """The optimizer's own tensor again, with its old content."""
    return live.copy_(kept) if hasattr(live, "detach") else copy.deepcopy(kept)


def _with_state(value: Any, seen: set[int], depth: int = 0) -> Iterator[Any]:
    """What a function refers to and has a state: closures, globals that it names, its self and arguments, and so on,
    so that a step that calls a helper is followed there."""
    if id(value) in seen or depth > DEEPEST or isinstance(value, (type, types.ModuleType)):
        return
    seen.add(id(value))
    if callable(getattr(value, "load_state_dict", None)):
        yield value
        if hasattr(value, "named_parameters") or hasattr(value, "param_groups"):
            return
    held: Iterable[Any] = ()
    if isinstance(value, types.MethodType):
        held = value.__func__, value.__self__
    elif isinstance(value, functools.partial):
        held = value.func, value.args, value.keywords
    elif isinstance(value, types.FunctionType):
        names = [value.__globals__.get(name) for name in value.__code__.co_names]
        cells = [each for cell in value.__closure__ or () for each in gc.get_referents(cell)]
        held = *names, *cells, value.__defaults__, value.__kwdefaults__, getattr(value, "__wrapped__", None)
    elif isinstance(value, (list, tuple, dict)) and len(value) <= 1000:
        held = value.values() if isinstance(value, dict) else value
    elif hasattr(value, "__dict__"):
        held = vars(value).values()
    for each in list(held):
        yield from _with_state(each, seen, depth + 1)


class static_input:
    """One buffer on the device for every batch: load = static_input(device="cuda"); x = load(batch). The old and the
    new batch are then never alive together. Takes tensors, and lists, tuples and dictionaries of them.

    x is a view of the buffer, valid until the next call; a batch that is larger than any before gets a new buffer,
    the old one freed first, and so does one of another dtype. Copies are non_blocking where the batch is pinned.
    A graph that still needs the last batch (a second backward) then fails in torch, which sees the change.
    Raises what torch raises where the device has no room. Source: the batches themselves."""

    def __init__(self, device: Any = "cuda") -> None:
        self._device = device
        self._buffers: dict[tuple[Any, ...], Any] = {}

    def __call__(self, batch: Any) -> Any:
        return self._load(batch, ())

    def _load(self, value: Any, place: tuple[Any, ...]) -> Any:
        torch: Any = sys.modules.get("torch")
        if isinstance(value, dict):
            return {key: self._load(each, (*place, key)) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            items = [self._load(each, (*place, i)) for i, each in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if torch is None or not isinstance(value, torch.Tensor):
            return value
        buffer = self._buffers.pop(place, None)
        if buffer is None or buffer.dtype != value.dtype or buffer.numel() < value.numel():
            buffer = None  # freed before the next is made
            buffer = torch.empty(value.numel(), dtype=value.dtype, device=self._device)
        self._buffers[place] = buffer
        return buffer[:value.numel()].view(value.shape).copy_(value, non_blocking=True)
