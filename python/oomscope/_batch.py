"""find_batch_size(): the largest batch that goes through, with nothing left behind; static_input(): one buffer for all
batches, in place of the old and the new one side by side."""
from __future__ import annotations

import collections
import collections.abc
import copy
import functools
import gc
import random
import sys
import traceback
import types
import warnings
from typing import Any, Callable, Iterable

from . import _torch
from ._marks import progress
from ._program import whole

MOST_OBJECTS = 20_000  # that a step refers to, looked at


def find_batch_size(step: Callable[[int], Any], start: int = 1, *, most: int = 1 << 20, steps: int = 2,
                    state: Iterable[Any] = ()) -> int:
    """The largest n up to `most` for which step(n) runs `steps` times in a row without running out of memory, by
    doubling from `start` and bisection; 0 if not even 1 does.

    step(n) makes its own batch of n and does what one training step does. Two steps, since the optimizer's state comes
    with the first and meets the activations only in the second. Modules, optimizers, whatever else has state_dict(), and
    random generators are found where step refers to them, however deep; lists of more than 1000 are not looked into:
    name what is in them in `state`. Before each try and at the end these are put back as they were: which parameters
    and buffers a module has, their values, gradients and modes; the optimizer's state; random state (Python, numpy,
    torch on all devices, and generators of your own); and memory to the byte. What is not: tensors of no module,
    plain attributes and counters, iterators and files. Needs a copy of that state on the CPU. Other errors of step are
    raised, after putting back. OOMs in here are neither recorded nor counted.
    Source: the step itself; nothing is estimated. Raises ValueError for sizes that make no sense and for a lazy module
    that has no weights yet, and ImportError without torch."""
    whole("most", most, whole("start", start))
    whole("steps", steps)
    if not callable(step):
        raise ValueError(f"find_batch_size: step={step!r}: a function of the batch size")
    import torch  # noqa: F401: without it there is nothing to put back
    kept = _State([*state, *_reached(step)])

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
        for module in modules:
            if any(map(torch.nn.parameter.is_lazy, [*module.parameters(), *module.buffers()])):
                raise ValueError(f"find_batch_size: {type(module).__name__} has no weights yet: run it on a batch first")
        self._owned = [(owned, dict(owned)) for module in modules for each in module.modules()
                       for owned in (each._parameters, each._buffers)]
        self._optimizers = [(each, [_without_params(group) for group in each.param_groups],
                             {p: {key: (value, _copy(value)) for key, value in state.items()}
                              for p, state in each.state.items()})
                            for each in things if isinstance(each, torch.optim.Optimizer)]
        self._others = [(each, copy.deepcopy(each.state_dict())) for each in things
                        if callable(getattr(type(each), "load_state_dict", None))
                        and not isinstance(each, (torch.nn.Module, torch.optim.Optimizer))]
        tensors = [each for module in modules for each in (*module.parameters(), *module.buffers())]
        tensors += [p for optimizer, _, _ in self._optimizers for group in optimizer.param_groups
                    for p in group["params"]]
        self._tensors = [(each, _copy(each), _copy(each.grad)) for each in {id(each): each for each in tensors}.values()]
        self._modes = [(each, each.training) for module in modules for each in module.modules()]
        numpy: Any = getattr(sys.modules.get("numpy"), "random", None)
        generators = (random.Random, torch.Generator, *((numpy.Generator, numpy.RandomState) if numpy else ()))
        self._random = [_random_state(each) for each in things if isinstance(each, generators)]
        self._random += [_random_state(each) for each in (random, torch.default_generator, numpy) if each is not None]
        cuda = _torch.cuda()
        self._cards = cuda.get_rng_state_all() if cuda is not None else None

    def put_back(self) -> None:
        import torch
        for owned, values in self._owned:
            owned.clear()
            owned.update(values)
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
        for restores in self._random:
            restores()
        cuda = _torch.cuda()
        if cuda is not None:
            gc.collect()
            if self._cards is not None:
                cuda.set_rng_state_all(self._cards)
            cuda.synchronize()
            cuda.empty_cache()


def _random_state(source: Any) -> Callable[[], Any]:
    """Puts a generator of Python, numpy or torch back to where it is now."""
    if hasattr(source, "getstate"):
        return functools.partial(source.setstate, source.getstate())
    if hasattr(source, "set_state"):
        return functools.partial(source.set_state, source.get_state())
    return functools.partial(setattr, source.bit_generator, "state", source.bit_generator.state)


def _without_params(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}


def _copy(value: Any) -> Any:
    return value.detach().to("cpu", copy=True) if hasattr(value, "detach") else copy.deepcopy(value)


def _restored(live: Any, kept: Any) -> Any:
    """The optimizer's own tensor again, with its old content."""
    return live.copy_(kept) if hasattr(live, "detach") else copy.deepcopy(kept)


def _reached(step: Any) -> list[Any]:
    """What a function refers to, nearest first: closures, globals that it names, attributes that it names of modules
    and classes, its self and arguments, and all that these hold, so that a step that calls a helper is followed there."""
    torch: Any = sys.modules["torch"]
    found: list[Any] = []
    queue, seen = collections.deque([step]), {id(step)}
    names: set[str] = set()  # that the functions so far use
    while queue and len(found) < MOST_OBJECTS:
        value = queue.popleft()
        found.append(value)
        if isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)) or _is_large(value):
            continue
        for each in _held(value, names):
            if id(each) not in seen and not isinstance(each, (str, bytes, int, float)):
                seen.add(id(each))
                queue.append(each)
    if queue:
        warnings.warn(f"find_batch_size: step refers to more than {MOST_OBJECTS} objects: what lies behind them is not "
                      "put back; name it in state=", stacklevel=3)
    return found


def _is_large(value: Any) -> bool:
    """A data set, or the globals of a module."""
    return isinstance(value, (list, tuple, dict, set)) and len(value) > 1000 or \
        isinstance(value, dict) and "__builtins__" in value


def _held(value: Any, names: set[str]) -> list[Any]:
    """Of a function what it refers to, by name or as a closure; of a module or class what is so named; else all."""
    if not isinstance(value, (types.FunctionType, types.ModuleType, type)):
        return gc.get_referents(value)
    home = value.__name__ if isinstance(value, types.ModuleType) else str(value.__module__)
    if home.split(".")[0] in ("torch", "numpy", "oomscope", "builtins"):
        return []
    if not isinstance(value, types.FunctionType):
        return [vars(each)[name] for each in getattr(value, "__mro__", [value]) for name in names & vars(each).keys()]
    codes = [value.__code__]
    for code in codes:  # and the functions within
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    used = {name for code in codes for name in code.co_names}
    names |= used
    found = [value.__globals__[name] for name in used & value.__globals__.keys()]
    return [*found, value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value)]


class static_input:
    """One buffer on the device for every batch: load = static_input(device="cuda"); x = load(batch). The old and the
    new batch are then never alive together. Takes tensors, and lists, tuples and mappings of them, whose types are kept;
    of the tensors the memory format is kept too. No graph leads through the buffer to the batch.

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
        if isinstance(value, collections.abc.MutableMapping):
            loaded = copy.copy(value)
            for key, each in value.items():
                loaded[key] = self._load(each, (*place, key))
            return loaded
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
        strides = torch.empty_like(value, device="meta").stride()  # dense, in the batch's order
        with torch.no_grad():
            return buffer[:value.numel()].as_strided(value.shape, strides).copy_(value, non_blocking=True)
