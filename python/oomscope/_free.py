"""free("model", "optimizer"): deletes names, clears what holds tensors unseen, and says who still holds the rest.

The tensors behind the names are noted first, by weak reference. What of them is alive afterwards is searched upwards
through gc.get_referrers, all tensors at once and one level at a time, until a name is found that a person can act on.
"""
from __future__ import annotations

import functools
import gc
import sys
import threading
import traceback
import types
import weakref
from typing import Any, Iterator

from . import _torch

DEEPEST = 12  # levels of containers between a tensor and a name
MOST_OBJECTS = 500  # looked behind on each level
MOST_SHOWN = 20


class Freed:
    """What free() did: freed bytes, cleared (text, bytes) and remaining (name, bytes, shape, holders), largest
    first. Bytes are those of distinct storages, on all devices."""

    def __init__(self) -> None:
        self.freed = 0
        self.cleared: list[tuple[str, int]] = []
        self.remaining: list[dict[str, Any]] = []

    def __str__(self) -> str:
        size = _torch.format_bytes
        lines = [f"freed {size(self.freed)}"]
        lines += [f"  cleared {what}: {size(count)}" for what, count in self.cleared]
        if self.remaining:
            lines.append(f"still held: {size(sum(each['bytes'] for each in self.remaining))}")
        for each in self.remaining[:MOST_SHOWN]:
            lines.append(f"  {size(each['bytes'])} {each['name']} {each['shape']}, by {' and '.join(each['holders'])}")
        rest = self.remaining[MOST_SHOWN:]
        if rest:
            lines.append(f"  {size(sum(each['bytes'] for each in rest))} [{len(rest)} others]")
        return "\n".join(lines)

    __repr__ = __str__


def free(*names: str) -> Freed:
    """Deletes these names where the caller stands, clears the stored traceback and a notebook's Out and _, collects
    cycles, returns cached memory to the driver, and reports what of them is still alive, and who holds it.

    print(oomscope.free("model", "optimizer")). Raises NameError, before anything is deleted, if a name is not there.
    In a function, a name is unbound where Python allows it (before 3.12), else set to None. Takes about a second in a
    large process. Source: the gc module; memory held by C++ alone (graphs of tensors that live) is not seen."""
    caller = sys._getframe(1)
    result = Freed()
    scope = _Scope(caller)
    missing = [name for name in names if name not in scope]
    if missing:
        raise NameError(f"free: no such name here: {', '.join(missing)}")
    tensors = list(_tensors_of({name: scope[name] for name in names}))
    before = sum(_storages(tensor for _, tensor in tensors).values())
    watched = [(weakref.ref(tensor), name) for name, tensor in tensors]
    del tensors
    for name in names:
        scope.delete(name)
    _clear(result, watched, "the stored traceback", _clear_traceback)
    _clear(result, watched, "the notebook's Out and _", _clear_notebook)
    cycle = _describe_cycle(watched)
    _clear(result, watched, f"reference cycles{cycle}", gc.collect)
    _release_cache()
    result.freed = before - sum(_storages(_alive(watched)).values())
    result.remaining = _remaining(watched)
    return result


class _Scope:
    """The names of a frame: a module's globals, or a function's locals."""

    def __init__(self, frame: types.FrameType) -> None:
        self._frame = frame
        self._is_function = bool(frame.f_code.co_flags & 1)  # CO_OPTIMIZED
        self._names = frame.f_locals

    def __contains__(self, name: str) -> bool:
        return name in self._names or name in self._frame.f_globals

    def __getitem__(self, name: str) -> Any:
        return self._names[name] if name in self._names else self._frame.f_globals[name]

    def delete(self, name: str) -> None:
        if not self._is_function or name not in self._names:
            (self._names if name in self._names else self._frame.f_globals).pop(name)
            return
        if sys.version_info >= (3, 12):
            self._names[name] = None  # a local cannot be unbound from outside
        else:
            del self._names[name]
        if sys.version_info < (3, 13):  # from there on it is written through (PEP 667)
            import ctypes
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(self._frame), ctypes.c_int(1))


def _tensors_of(roots: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Tensors reachable through containers, attributes, modules and optimizers, each once, with a name."""
    torch = _torch.torch_module()
    seen: set[int] = set()
    queue = list(roots.items())
    while queue:
        name, value = queue.pop()
        if id(value) in seen or isinstance(value, (str, bytes, int, float, type, types.ModuleType, types.FunctionType)):
            continue
        seen.add(id(value))
        if torch is not None and isinstance(value, torch.Tensor):
            yield name, value
            if value.is_leaf and value.grad is not None:
                queue.append((name + ".grad", value.grad))
        elif torch is not None and isinstance(value, torch.nn.Module):
            queue += [(f"{name}.{key}", each) for key, each in value.named_parameters()]
            queue += [(f"{name}.{key}", each) for key, each in value.named_buffers()]
            queue += [(f"{name}.{key}", each) for key, each in vars(value).items() if not key.startswith("_")]
        elif isinstance(value, dict):
            queue += [(f"{name}[{_short(key)}]", each) for key, each in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            queue += [(f"{name}[{i}]", each) for i, each in enumerate(value)]
        elif hasattr(value, "__dict__"):
            queue += [(f"{name}.{key}", each) for key, each in vars(value).items()]


def _storages(tensors: Any) -> dict[int, int]:
    """Bytes by address of storage: views share one."""
    found: dict[int, int] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        except (RuntimeError, NotImplementedError, AttributeError):  # fake, meta or sparse tensors have none
            continue
    return found


def _alive(watched: list[tuple[Any, str]]) -> list[Any]:
    return [tensor for tensor in (reference() for reference, _ in watched) if tensor is not None]


def _clear(result: Freed, watched: list[tuple[Any, str]], what: str, action: Any) -> None:
    before = sum(_storages(_alive(watched)).values())
    action()
    cleared = before - sum(_storages(_alive(watched)).values())
    if cleared > 0:
        result.cleared.append((what, cleared))


def _clear_traceback() -> None:
    for name in ("last_traceback", "last_value", "last_type", "last_exc"):
        stored = sys.__dict__.pop(name, None)
        trace = stored.__traceback__ if isinstance(stored, BaseException) else stored
        if isinstance(trace, types.TracebackType):
            traceback.clear_frames(trace)


def _clear_notebook() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return
    shell.user_ns.get("Out", {}).clear()
    for names in (shell.user_ns, shell.user_ns_hidden):
        for name in [name for name in names if name in ("_", "__", "___") or (name[:1] == "_" and name[1:].isdigit())]:
            names[name] = ""
    for name in ("_", "__", "___"):
        if hasattr(shell.displayhook, name):
            setattr(shell.displayhook, name, "")
    last = getattr(shell, "last_execution_result", None)
    if last is not None:
        last.result = None


def _release_cache() -> None:
    if _torch.cuda_is_on():
        sys.modules["torch"].cuda.empty_cache()


def _remaining(watched: list[tuple[Any, str]]) -> list[dict[str, Any]]:
    alive = [(reference(), name) for reference, name in watched]
    tensors = [(tensor, name) for tensor, name in alive if tensor is not None]
    del alive
    holders = _holders([tensor for tensor, _ in tensors], (watched, tensors))
    rows = []
    seen: set[int] = set()
    for tensor, name in tensors:
        for address, count in _storages([tensor]).items():
            if address not in seen:
                seen.add(address)
                rows.append({"name": name, "bytes": count, "shape": tuple(tensor.shape),
                             "holders": holders.get(id(tensor)) or ["something outside Python: a graph, or C++"]})
    return sorted(rows, key=lambda row: -row["bytes"])


def _describe_cycle(watched: list[tuple[Any, str]]) -> str:
    """The types on the way up from what is alive, before the collector takes those that only a cycle holds."""
    level: list[Any] = _alive(watched)
    kinds: dict[str, None] = {}
    for _ in range(4):
        if not level:
            break
        level = [each for each in gc.get_referrers(*level[:MOST_OBJECTS])
                 if not isinstance(each, (list, types.FrameType)) and not _is_namespace(each)]
        kinds.update((type(each).__name__, None) for each in level if not isinstance(each, (dict, tuple, types.CellType)))
    return f" through {', '.join(list(kinds)[:3])}" if kinds else ""


# --- who holds it ----------------------------------------------------------------------------------------------------

def _holders(tensors: list[Any], own: tuple[Any, ...]) -> dict[int, list[str]]:
    """For each tensor (by id) the names that lead to it, at most three."""
    found: dict[int, list[str]] = {id(tensor): [] for tensor in tensors}
    for holder, tensor in _gradients(tensors):
        found[id(tensor)].append(f"the .grad of {_describe(holder)}")
    # path[id(object)] = (text behind the object that leads to the tensor, the tensor's id)
    level = [(tensor, "", id(tensor)) for tensor in tensors]
    ours = {id(each) for each in own} | {id(found), id(tensors)}
    seen = {id(tensor) for tensor in tensors}
    for _ in range(DEEPEST):
        targets = [each for each, _, _ in level]
        ours |= {id(level), id(targets)}
        above: list[tuple[Any, str, int]] = []
        by_id = {id(each): (tail, tensor) for each, tail, tensor in level}
        for referrer in gc.get_referrers(*targets) if targets else []:
            if id(referrer) in ours or id(referrer) in seen or _is_ours(referrer):
                continue
            for child in gc.get_referents(referrer):
                if id(child) not in by_id:
                    continue
                tail, tensor = by_id[id(child)]
                name = _root_name(referrer, child, tail)
                if name is not None:
                    if name not in found[tensor] and len(found[tensor]) < 3:
                        found[tensor].append(name)
                else:
                    above.append((referrer, _step_text(referrer, child) + tail, tensor))
                    seen.add(id(referrer))
        del targets, by_id
        ours |= {id(above)} | {id(each) for each in above}
        for _, tail, tensor in level if not above else []:  # nobody we know the name of
            if not found[tensor] and tail:
                found[tensor].append(tail.lstrip(" <"))
        level = [each for each in above if not found[each[2]]][:MOST_OBJECTS]  # the nearest names are enough
        if not level:
            break
    _add_threads(tensors, found)
    return found


def _gradients(tensors: list[Any]) -> Iterator[tuple[Any, Any]]:
    """.grad is held by C++, which the collector cannot see."""
    torch = _torch.torch_module()
    wanted = {id(tensor): tensor for tensor in tensors}
    if torch is None:
        return
    for each in gc.get_objects():
        if issubclass(type(each), torch.Tensor) and each.is_leaf and each.grad is not None and id(each.grad) in wanted:
            yield each, wanted[id(each.grad)]


def _add_threads(tensors: list[Any], found: dict[int, list[str]]) -> None:
    """Running frames are invisible to the collector until somebody looks at them."""
    wanted = {id(tensor) for tensor in tensors}
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        walked: types.FrameType | None = frame
        while walked is not None:
            if not _is_own_frame(walked):
                for each in _locals_of(walked):
                    for held in _reach(each, wanted):
                        where = f"a local of {walked.f_code.co_name}()"
                        if ident != threading.get_ident():
                            where += f" in thread {names.get(ident, ident)!r}"
                        if where not in found[held]:
                            found[held].append(where)
            walked = walked.f_back


def _locals_of(frame: types.FrameType) -> list[Any]:
    """The values, leaving nothing behind: before 3.13 a frame keeps the dictionary that f_locals made, and with it
    its values. Where nobody else has that dictionary it is emptied again."""
    names = frame.f_locals
    values = list(names.values())
    if sys.version_info < (3, 13) and names is not frame.f_globals and frame.f_code.co_flags & 1:
        if sys.getrefcount(names) <= 3:  # the frame's, ours, the argument's
            names.clear()
    return values


def _reach(value: Any, wanted: set[int]) -> list[int]:
    """Ids of wanted tensors that value is, or holds one level down."""
    if id(value) in wanted:
        return [id(value)]
    if type(value) in (list, tuple, dict):
        return [id(each) for each in gc.get_referents(value) if id(each) in wanted]
    return []


def _is_own_frame(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("oomscope.")


def _is_ours(value: Any) -> bool:
    return isinstance(value, types.FrameType) and _is_own_frame(value)


def _root_name(referrer: Any, child: Any, tail: str) -> str | None:
    """What a person can act on, if the search ends at this object."""
    if _is_namespace(referrer):
        key = next((k for k, v in referrer.items() if v is child), "?")
        if key in ("Out", "_oh"):
            return f"the notebook's Out{tail}"
        return f"global {referrer['__name__']}.{key}{tail}"
    if isinstance(referrer, types.FrameType):
        kept = "kept by a traceback" if any(
            isinstance(each, types.TracebackType) for each in gc.get_referrers(referrer)) else "running"
        return f"a local of {referrer.f_code.co_name}() ({kept}){tail}"
    if isinstance(referrer, threading.Thread):
        return f"thread {referrer.name!r}{tail}"
    if type(referrer).__name__ == "_lru_cache_wrapper":
        return f"the cache of {getattr(referrer, '__qualname__', '?')}{tail}"
    if isinstance(referrer, type):
        return f"class {referrer.__qualname__}{tail}"
    return None


def _is_namespace(value: Any) -> bool:
    """A module's globals?"""
    return isinstance(value, dict) and isinstance(value.get("__name__"), str) and "__builtins__" in value


def _step_text(parent: Any, child: Any) -> str:
    """How the parent names the child."""
    if isinstance(parent, dict):
        key = next((k for k, v in parent.items() if v is child), "?")
        return f"[{_short(key)}]"
    if isinstance(parent, (list, tuple)):
        return f"[{next((i for i, v in enumerate(parent) if v is child), '?')}]"
    if isinstance(parent, types.CellType):
        return " (closure)"
    if isinstance(parent, types.FunctionType):
        return f" < function {parent.__qualname__}"
    if isinstance(parent, functools.partial):
        return f" < partial of {getattr(parent.func, '__name__', '?')}"
    return f" < {type(parent).__name__}"


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 40 else text[:37] + "..."


def _describe(tensor: Any) -> str:
    return f"a {type(tensor).__name__} of {tuple(tensor.shape)}"
