"""find_batch_size(): the largest batch that goes through, with nothing left behind; static_input(): one buffer for all
batches, in place of the old and the new one side by side."""
from __future__ import annotations

import collections.abc
import copy
import functools
import gc
import itertools
import random
import sys
import traceback
import weakref
from typing import Any, Callable, Iterable, Iterator

from . import _torch
from ._marks import progress
from ._program import whole

_OOM_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED",
              "CUDNN_STATUS_ALLOC_FAILED")


def find_batch_size(step: Callable[[int], Any], start: int = 1, *, most: int = 1 << 20, steps: int = 2,
                    state: Iterable[Any] = ()) -> int:
    """The largest n up to `most` for which step(n) runs `steps` times in a row without running out of memory, by
    doubling from `start` and bisection; 0 if not even 1 does.

    step(n) makes its own batch of n and does what one training step does. Two steps, since the optimizer's state comes
    with the first and meets the activations only in the second. Before each try and at the end these are put back as
    they were: every tensor that is alive and on a card, needs a gradient, or is a module's or an optimizer's; gradients;
    modes of modules; optimizers, schedulers and gradient scalers; random state (Python, numpy, torch on all devices);
    whatever else is a tensor, has state_dict() or is a random generator, if `state` names it; and memory to the byte.
    What is not: plain attributes and counters, iterators and files, and a lazy module's weights: run it on a batch
    first. Needs a copy of that state on the CPU. Other errors of step are raised, after putting back. OOMs in here are
    neither recorded nor counted.
    Source: the step itself; nothing is estimated. Raises ValueError for sizes that make no sense, and ImportError
    without torch."""
    whole("most", most, whole("start", start))
    whole("steps", steps)
    if not callable(step):
        raise ValueError(f"find_batch_size: step={step!r}: a function of the batch size")
    kept = _State(list(state))

    def fits(n: int) -> bool:
        kept.put_back()
        try:
            for _ in range(steps):
                step(n)
            return True
        except Exception as error:
            if not _is_oom(error):
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


def _is_oom(error: BaseException) -> bool:
    """Out of memory in any of torch's wordings, on the card or the host."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, (RuntimeError, MemoryError)) and any(words in str(error) for words in _OOM_WORDS))


class _State:
    """A copy on the CPU of all that a step changes, and the way back: in place, so that no tensor moves."""

    def __init__(self, named: list[Any]) -> None:
        import torch
        things = [*named, *gc.get_objects()]
        modules, optimizers = _torch.of_kind(things, torch.nn.Module), _torch.of_kind(things, torch.optim.Optimizer)
        self._modes = [(each, each.training) for each in modules]
        self._states = [(each, _entries(each.state)) for each in optimizers]
        self._groups = [(group, dict(group)) for each in optimizers for group in each.param_groups]
        owned = [*named, *(each for module in modules for each in (*module.parameters(False), *module.buffers(False))),
                 *(value for _, state in self._states for entries in state.values() for value in entries.values())]
        ids = set(map(id, owned))
        alive = [each for each in _torch.tensors_alive() if each.is_cuda or each.requires_grad or id(each) in ids]
        self._gradients = [(each, None if each.grad is None else each.grad.to("cpu", copy=True))
                           for each in alive if each.requires_grad and each.is_leaf]
        self._values = [(weakref.ref(each), torch.UntypedStorage(count).copy_(each.untyped_storage()))
                        for each, count in _torch.storages(alive).values()]
        scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)  # torch 2.3 on
        others = [*named, *_torch.of_kind(things, torch.optim.lr_scheduler.LRScheduler, scaler)]
        others += [random, torch.default_generator, getattr(sys.modules.get("numpy"), "random", None)]
        self._others = [_way_back(each) for each in others
                        if not isinstance(each, (torch.nn.Module, torch.optim.Optimizer))]
        cuda = _torch.cuda()
        if cuda is not None:
            self._others.append(functools.partial(cuda.set_rng_state_all, cuda.get_rng_state_all()))

    def put_back(self) -> None:
        for tensor, gradient in self._gradients:
            tensor.grad = None if gradient is None else gradient.to(tensor.device, copy=True)
        for kept, value in self._values:
            tensor = kept()
            if tensor is not None:
                tensor.untyped_storage().copy_(value)
        for optimizer, state in self._states:
            optimizer.state.clear()
            optimizer.state.update(_entries(state))
        for group, values in self._groups:
            group.clear()
            group.update(values)
        for module, mode in self._modes:
            module.training = mode
        for restores in self._others:
            restores()
        cuda = _torch.cuda()
        if cuda is not None:
            gc.collect()
            cuda.synchronize()
            cuda.empty_cache()


def _entries(state: Any) -> dict[Any, Any]:
    """An optimizer's state, apart from its tensors a copy."""
    return {parameter: dict(entries) for parameter, entries in state.items()}


def _way_back(thing: Any) -> Callable[[], Any]:
    """Puts whatever has a state_dict, or is a random generator of Python, numpy or torch, back to where it is now."""
    if hasattr(thing, "load_state_dict"):
        state = copy.deepcopy(thing.state_dict())
        return lambda: thing.load_state_dict(copy.deepcopy(state))
    for read, write in (("getstate", "setstate"), ("get_state", "set_state")):
        if hasattr(thing, write):
            return functools.partial(getattr(thing, write), getattr(thing, read)())
    generator = getattr(thing, "bit_generator", None)  # numpy's
    return functools.partial(setattr, generator, "state", generator.state) if generator is not None else lambda: None


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
        self._buffers: dict[int, Any] = {}

    def __call__(self, batch: Any) -> Any:
        return self._load(batch, itertools.count())

    def _load(self, value: Any, places: Iterator[int]) -> Any:
        import torch
        if isinstance(value, collections.abc.MutableMapping):
            loaded = copy.copy(value)
            loaded.update({key: self._load(each, places) for key, each in value.items()})
            return loaded
        if isinstance(value, (list, tuple)):
            items = [self._load(each, places) for each in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if not isinstance(value, torch.Tensor):
            return value
        place = next(places)
        buffer = self._buffers.pop(place, None)
        if buffer is None or buffer.dtype != value.dtype or buffer.numel() < value.numel():
            buffer = None  # freed before the next is made
            buffer = torch.empty(value.numel(), dtype=value.dtype, device=self._device)
        self._buffers[place] = buffer
        strides = torch.empty_like(value, device="meta").stride()  # dense, in the batch's order
        with torch.no_grad():
            return buffer[:value.numel()].as_strided(value.shape, strides).copy_(value, non_blocking=True)
