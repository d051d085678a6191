"""find_batch_size(): the largest batch that goes through, with nothing left behind; static_input(): one buffer for all
batches, in place of the old and the new one side by side."""
from __future__ import annotations

import copy
import gc
import random
import sys
import traceback
import types
from typing import Any, Callable, Iterable

from . import _torch
from ._marks import progress


def find_batch_size(step: Callable[[int], Any], start: int = 1, *, most: int = 1 << 20, steps: int = 2,
                    state: Iterable[Any] = ()) -> int:
    """The largest n up to `most` for which step(n) runs `steps` times in a row without running out of memory, by
    doubling from `start` and bisection; 0 if not even 1 does.

    step(n) makes its own batch of n and does what one training step does. Two steps, since the optimizer's state comes
    with the first and meets the activations only in the second. Modules, optimizers and whatever else has state_dict()
    are found where step refers to them; name others in `state`. Before each try and at the end these are put back as
    they were: parameters, buffers, gradients, optimizer state, random state (Python, numpy, torch on all devices), and
    memory to the byte. Needs a copy of that state on the CPU. Other errors of step are raised, after putting back.
    OOMs in here are neither recorded nor counted. Source: the step itself; nothing is estimated."""
    if start < 1 or most < start or steps < 1:
        raise ValueError(f"start={start}, most={most}, steps={steps}: 1 <= start <= most and steps >= 1")
    kept = _State([*state, *_referred(step)])

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
        fitting, failing = _double(fits, start, most)
        while failing - fitting > 1:
            middle = (fitting + failing) // 2
            if fits(middle):
                fitting = middle
            else:
                failing = middle
        return fitting
    finally:
        progress.paused -= 1
        kept.put_back()


def _double(fits: Callable[[int], bool], start: int, most: int) -> tuple[int, int]:
    """(largest known to fit, smallest known to fail or beyond `most`)."""
    if not fits(start):
        return 0, start
    fitting = start
    while fitting < most:
        larger = min(fitting * 2, most)
        if not fits(larger):
            return fitting, larger
        fitting = larger
    return fitting, most + 1


class _State:
    """A copy on the CPU of all that a step changes, and the way back: in place, so that no tensor moves."""

    def __init__(self, things: list[Any]) -> None:
        torch = _torch.torch_module()
        assert torch is not None, "find_batch_size needs torch"
        self._torch = torch
        self._modules = [each for each in things if isinstance(each, torch.nn.Module)]
        self._optimizers = [each for each in things if isinstance(each, torch.optim.Optimizer)]
        self._others = [(each, copy.deepcopy(each.state_dict())) for each in things
                        if each not in self._modules and each not in self._optimizers and hasattr(each, "state_dict")]
        tensors = {id(each): each for module in self._modules for each in (*module.parameters(), *module.buffers())}
        tensors.update((id(each), each) for optimizer in self._optimizers for group in optimizer.param_groups
                       for each in group["params"])
        self._tensors = [(each, _cpu(each), None if each.grad is None else _cpu(each.grad))
                         for each in tensors.values()]
        self._states = [[(p, {key: (value, _cpu(value)) for key, value in state.items()})
                         for p, state in optimizer.state.items()] for optimizer in self._optimizers]
        self._groups = [[{key: value for key, value in group.items() if key != "params"}
                         for group in optimizer.param_groups] for optimizer in self._optimizers]
        self._modes = [(each, each.training) for module in self._modules for each in module.modules()]
        self._random = (random.getstate(), torch.get_rng_state(),
                        torch.cuda.get_rng_state_all() if _torch.cuda_is_on() else None)
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy is not None else None

    def put_back(self) -> None:
        torch = self._torch
        with torch.no_grad():
            for tensor, value, gradient in self._tensors:
                tensor.copy_(value)
                if gradient is None:
                    tensor.grad = None
                elif tensor.grad is not None:
                    tensor.grad.copy_(gradient)
                else:
                    tensor.grad = gradient.to(tensor.device)
            for optimizer, states, groups in zip(self._optimizers, self._states, self._groups):
                optimizer.state.clear()
                for parameter, state in states:
                    optimizer.state[parameter] = {key: _restored(*pair) for key, pair in state.items()}
                for group, values in zip(optimizer.param_groups, groups):
                    for key in [key for key in group if key != "params" and key not in values]:
                        del group[key]
                    group.update(values)
        for thing, state in self._others:
            thing.load_state_dict(copy.deepcopy(state))
        for module, mode in self._modes:
            module.training = mode
        python, cpu, cuda = self._random
        random.setstate(python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        torch.set_rng_state(cpu)
        gc.collect()
        if _torch.cuda_is_on():
            if cuda is not None:
                torch.cuda.set_rng_state_all(cuda)
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def _cpu(value: Any) -> Any:
    return value.detach().to("cpu", copy=True) if hasattr(value, "detach") else copy.deepcopy(value)


def _restored(live: Any, kept: Any) -> Any:
    """The optimizer's own tensor again, with its old content."""
    if hasattr(live, "detach"):
        live.copy_(kept)
        return live
    return copy.deepcopy(kept)


def _referred(step: Any) -> list[Any]:
    """What a function refers to and has a state: closures, globals it names, its self and arguments, two levels
    deep, so that a step that calls a helper is followed there."""
    found: list[Any] = []
    queue: list[tuple[Any, int]] = [(step, 0)]
    seen: set[int] = set()
    while queue:
        value, depth = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if callable(getattr(value, "state_dict", None)) and not isinstance(value, type):
            found.append(value)
            continue
        if isinstance(value, types.MethodType):
            queue += [(value.__func__, depth), (value.__self__, depth)]
        elif isinstance(value, types.FunctionType) and depth < 3:
            names = [value.__globals__.get(name) for name in value.__code__.co_names]
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
            queue += [(each, depth + 1) for each in (*names, *cells, *(value.__defaults__ or ()))]
        elif hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
            queue += [(each, depth) for each in (value.func, *value.args, *value.keywords.values())]
        elif isinstance(value, (list, tuple, dict)) and depth < 3 and len(value) <= 1000:
            queue += [(each, depth + 1) for each in (value.values() if isinstance(value, dict) else value)]
        elif not isinstance(value, (types.ModuleType, type)) and hasattr(value, "__dict__") and depth < 2:
            queue += [(each, depth + 1) for each in vars(value).values()]
    return found


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


class static_input:
    """One buffer on the device for every batch: load = static_input(device="cuda"); x = load(batch). The old and the
    new batch are then never alive together. Takes tensors, and lists, tuples and dictionaries of them.

    x is a view of the buffer, valid until the next call; a batch that is larger than any before gets a new buffer,
    the old one freed first, and so does one of another dtype. Copies are non_blocking where the batch is pinned.
    A graph that still needs the last batch (a second backward) then fails in torch, which sees the change."""

    def __init__(self, device: Any = "cuda") -> None:
        self._device = device
        self._buffers: dict[tuple[Any, ...], Any] = {}

    def __call__(self, batch: Any) -> Any:
        return self._load(batch, ())

    def _load(self, value: Any, place: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            return {key: self._load(each, (*place, key)) for key, each in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self._load(each, (*place, i)) for i, each in enumerate(value)))
        if isinstance(value, (list, tuple)):
            return type(value)(self._load(each, (*place, i)) for i, each in enumerate(value))
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(value, torch.Tensor):
            return value
        buffer = self._buffers.get(place)
        if buffer is None or buffer.dtype != value.dtype or buffer.numel() < value.numel():
            buffer = None
            self._buffers.pop(place, None)
            buffer = self._buffers[place] = torch.empty(value.numel(), dtype=value.dtype, device=self._device)
        view = buffer[:value.numel()].view(value.shape)
        return view.copy_(value, non_blocking=True)
