"""free("model", "optimizer"): deletes names, clears what holds tensors unseen, and says who still holds the rest.

The storages behind the names are noted first, by weak reference. From all tensors that then still share one of them the
search goes upwards through gc.get_referrers, all at once and a level at a time, until names are found that a person can
act on. What is invisible to the collector is looked up before: locals of running frames, gradients and graphs, which
C++ holds, and NumPy's arrays.
"""
from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import sys
import threading
import traceback
import types
from collections import defaultdict, deque
from typing import Any, Callable, Iterator, NamedTuple

from . import _torch
from ._program import Table, size

DEEPEST = 12  # levels of containers between a tensor and a name
MOST_OBJECTS = 2000  # looked behind on each level
MOST_NODES = 1_000_000  # of graphs, looked at
MOST_SHOWN = 20


class Watched(NamedTuple):
    """A storage, and the first tensor on it that was found behind the names."""

    name: str
    shape: tuple[int, ...]
    bytes: int
    address: int
    storage: Any  # torch's StorageWeakRef


class Freed(Table):
    """What free() did: freed bytes, cleared (text, bytes) and remaining (name, bytes, shape, holders), largest
    first. Bytes are those of distinct storages, on all devices."""

    def __init__(self) -> None:
        self.freed = 0
        self.cleared: list[tuple[str, int]] = []
        self.remaining: list[dict[str, Any]] = []

    def _rows(self) -> list[tuple[str, ...]]:
        held, others = self.remaining[:MOST_SHOWN], self.remaining[MOST_SHOWN:]
        rows: list[tuple[str, ...]] = [("", "bytes", ""), ("freed", size(self.freed), "")]
        rows += [(f"cleared {what}", size(count), "") for what, count in self.cleared]
        if held:
            rows.append(("still held", size(sum(each["bytes"] for each in self.remaining)), ""))
        rows += [(f"  {each['name']} {each['shape']}", size(each["bytes"]), "by " + " and ".join(each["holders"]))
                 for each in held]
        if others:
            rows.append((f"  [{len(others)} others]", size(sum(each["bytes"] for each in others)), ""))
        return rows


def free(*names: str) -> Freed:
    """Deletes these names where the caller stands, clears the stored traceback and a notebook's Out and _, collects
    cycles, returns cached memory to the driver, and reports what of them is still alive, and who holds it.

    print(oomscope.free("model", "optimizer")). Raises NameError, before anything is deleted, if a name is not there.
    In a function, a name is unbound where Python allows it (before 3.12), else set to None. Takes about a second in a
    large process. Memory is freed when nothing shares it any more: views, detached tensors and arrays are holders too.
    Source: the gc module, and torch's weak references of storages; what C++ alone holds has no name."""
    caller, result = sys._getframe(1), Freed()
    scope = {**caller.f_globals, **caller.f_locals}
    missing = [str(name) for name in names if name not in scope] if names else ["(none given)"]
    if missing:
        raise NameError(f"free: no such name here: {', '.join(missing)[:100]}")
    watched = _watched({name: scope[name] for name in names})
    del scope
    before = _bytes(watched)
    for name in dict.fromkeys(names):
        _delete(caller, name)
    _clear(result, watched, "the stored traceback", _clear_traceback)
    _clear(result, watched, "the notebook's Out and _", _clear_notebook)
    _clear(result, watched, f"reference cycles {_types_above(watched)}", gc.collect)
    cuda = _torch.cuda()
    if cuda is not None:
        cuda.empty_cache()
    result.freed = before - _bytes(watched)
    result.remaining = _remaining(watched)
    return result


def _delete(frame: types.FrameType, name: str) -> None:
    names = frame.f_locals
    if name not in names or not frame.f_code.co_flags & 1:  # CO_OPTIMIZED: a function's
        (names if name in names else frame.f_globals).pop(name)
        return
    if sys.version_info >= (3, 12):
        names[name] = None  # a local cannot be unbound from outside
    else:
        del names[name]
    if sys.version_info < (3, 13):  # from there on it is written through (PEP 667)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(1))


def _tensors_of(roots: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Tensors reachable through containers, attributes, modules and optimizers, each once, with its shortest name."""
    torch = _torch.torch_module()
    seen: set[int] = set()
    queue = deque(roots.items())
    while torch is not None and queue:
        name, value = queue.popleft()
        if id(value) in seen or isinstance(value, (str, bytes, int, float, type, types.ModuleType, types.FunctionType)):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            yield name, value
            if value.is_leaf and value.grad is not None:
                queue.append((name + ".grad", value.grad))
        elif isinstance(value, dict):
            queue += [(f"{name}[{_short(key)}]", each) for key, each in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            queue += [(f"{name}[{i}]", each) for i, each in enumerate(value)]
        elif hasattr(value, "__dict__"):
            inner = dict(vars(value))
            if isinstance(value, torch.nn.Module):
                inner = {**dict(value.named_parameters()), **dict(value.named_buffers()), **inner}
            queue += [(f"{name}.{key}", each) for key, each in inner.items()]


def _watched(roots: dict[str, Any]) -> list[Watched]:
    found = list(_tensors_of(roots))
    names = {id(tensor): name for name, tensor in found}
    storages = _torch.storages(tensor for _, tensor in found)
    return [Watched(names[id(tensor)], tuple(tensor.shape), count, address, _torch.weak_storage(tensor))
            for address, (tensor, count) in storages.items() if count]


def _bytes(watched: list[Watched]) -> int:
    return sum(each.bytes for each in watched if not each.storage.expired())


def _alive(watched: list[Watched]) -> dict[int, list[Any]]:
    """By address of a storage that is not freed, the tensors of it that Python knows."""
    found: dict[int, list[Any]] = {each.address: [] for each in watched if not each.storage.expired()}
    for tensor in _torch.tensors_alive() if found else []:
        for address in _torch.storages([tensor]):
            if address in found:
                found[address].append(tensor)
    return found


def _clear(result: Freed, watched: list[Watched], what: str, action: Callable[[], Any]) -> None:
    before = _bytes(watched)
    action()
    if before > _bytes(watched):
        result.cleared.append((what, before - _bytes(watched)))


def _clear_traceback() -> None:
    for name in ("last_traceback", "last_value", "last_type", "last_exc"):
        stored = vars(sys).pop(name, None)
        trace = getattr(stored, "__traceback__", stored)
        if isinstance(trace, types.TracebackType):
            traceback.clear_frames(trace)


def _clear_notebook() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return
    shell.user_ns.get("Out", {}).clear()
    for names in (shell.user_ns, shell.user_ns_hidden, vars(shell.displayhook)):
        names.update({name: "" for name in names if name.startswith("_") and name.strip("_0123456789") == ""})
    shell.last_execution_result = None


def _types_above(watched: list[Watched]) -> str:
    """The types on the way up, before the collector takes those that only a cycle holds."""
    level = list(itertools.chain(*_alive(watched).values()))
    found: dict[str, None] = {}
    for _ in range(4):
        level = [each for each in gc.get_referrers(*level[:MOST_OBJECTS])
                 if not isinstance(each, (list, types.FrameType)) and not _is_namespace(each)] if level else []
        found.update((type(each).__name__, None) for each in level
                     if not isinstance(each, (dict, tuple, types.CellType)))
    return "through " + ", ".join(list(found)[:3])


# --- who holds it ----------------------------------------------------------------------------------------------------

def _remaining(watched: list[Watched]) -> list[dict[str, Any]]:
    alive = _alive(watched)
    local_names = _names_in_frames()
    parents = _parents(list(itertools.chain(*alive.values())), {id(each) for each in (alive, *alive.values(), local_names)})
    rows = [{"name": each.name, "bytes": each.bytes, "shape": each.shape,
             "holders": _holders(alive[each.address], parents, local_names) or ["something outside Python: C++"]}
            for each in watched if each.address in alive]
    return sorted(rows, key=lambda row: -row["bytes"])


def _names_in_frames() -> dict[int, str]:
    """By id of a value, which running function has it as a local. Nothing is left behind: before 3.13 a frame keeps the
    dictionary that f_locals made, and with it its values; where nobody else has that dictionary it is emptied again."""
    found: dict[int, str] = {}
    threads = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, top in sys._current_frames().items():
        where = "" if ident == threading.get_ident() else f" in thread {threads.get(ident, ident)!r}"
        for frame, _ in traceback.walk_stack(top):
            if not frame.f_code.co_flags & 1 or str(frame.f_globals.get("__name__")).startswith("oomscope."):
                continue  # a module's names are found as its globals
            names = frame.f_locals
            found.update((id(value), f"{name}, a local of {frame.f_code.co_name}(){where}")
                         for name, value in names.items())
            if sys.version_info < (3, 13) and sys.getrefcount(names) <= 3:  # the frame's, ours, the argument's
                names.clear()
    return found


def _parents(level: list[Any], ours: set[int]) -> dict[int, list[Any]]:
    """By id of an object, who refers to it, from these upwards. Objects of this search are left out."""
    parents: dict[int, list[Any]] = defaultdict(list)
    ours |= {id(parents), id(level)}
    for child, parent in _hidden(level):
        parents[id(child)].append(parent)
        level.append(parent)
    seen = {id(each) for each in level}
    for _ in range(DEEPEST):
        children = {id(each) for each in level}
        above: list[Any] = []
        ours.add(id(above))
        for referrer in gc.get_referrers(*level) if level else []:
            if id(referrer) in ours or isinstance(referrer, types.FrameType) and _is_running(referrer):
                continue
            for child in {id(each): each for each in gc.get_referents(referrer)}:
                if child in children:
                    parents[child].append(referrer)
            if id(referrer) not in seen and not _is_end(referrer):
                above.append(referrer)
                seen.add(id(referrer))
        ours.update(id(each) for each in parents.values())
        level = above[:MOST_OBJECTS]
        ours.add(id(level))
    return parents


def _hidden(tensors: list[Any]) -> list[tuple[Any, Any]]:
    """(what is held, who holds it), of these tensors, where the collector does not see that: a gradient by its tensor,
    a leaf by the results of the graphs that it is in, memory by NumPy's arrays."""
    wanted = {id(each) for each in tensors}
    found: list[tuple[Any, Any]] = []
    everything = _torch.tensors_alive()
    found += [(each.grad, each) for each in everything if each.is_leaf and id(each.grad) in wanted]
    graphs = ((leaf, each) for each in everything if each.grad_fn is not None for leaf in _torch.leaves_of(each))
    found += [pair for pair in itertools.islice(graphs, MOST_NODES) if id(pair[0]) in wanted]
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    seen: set[int] = set()
    for each in gc.get_objects() if array is not None and tensors else []:
        for value in gc.get_referents(each):
            if type(value) is array and id(value) not in seen:
                seen.add(id(value))
                base = value
                while type(base) is array:
                    base = base.base
                if id(base) in wanted:
                    found.append((base, value))
    return found


def _holders(tensors: list[Any], parents: dict[int, list[Any]], local_names: dict[int, str]) -> list[str]:
    """The names that lead to them, nearest first, at most three."""
    found: dict[str, None] = {}
    queue: deque[tuple[Any, str]] = deque((tensor, "") for tensor in tensors)
    seen = {id(tensor) for tensor in tensors}
    last = ""
    while queue and len(found) < 3:
        value, tail = queue.popleft()
        last = tail or last
        if id(value) in local_names:
            found[local_names[id(value)] + (f": {tail}" if tail else "")] = None
        for parent in parents.get(id(value), ()):
            if _is_end(parent):
                found[_step(parent, value) + tail] = None
            elif id(parent) not in seen:
                seen.add(id(parent))
                queue.append((parent, _step(parent, value) + tail))
    return list(found)[:3] or [last.lstrip(" <")] * bool(last)


def _is_end(value: Any) -> bool:
    """Can a person act on it, so that the search ends there?"""
    return isinstance(value, (type, types.FrameType, threading.Thread, functools._lru_cache_wrapper)) \
        or _is_namespace(value)


def _is_namespace(value: Any) -> bool:
    """A module's globals?"""
    return isinstance(value, dict) and isinstance(value.get("__name__"), str) and "__builtins__" in value


def _is_running(frame: types.FrameType) -> bool:
    """Then its locals are known, by name. Others are kept by a traceback, or a generator."""
    return any(frame is each for top in sys._current_frames().values() for each, _ in traceback.walk_stack(top))


def _step(parent: Any, child: Any) -> str:
    """How the parent names the child."""
    if isinstance(parent, dict):
        key = next((_short(key) for key, value in parent.items() if value is child), "a key")
        if not _is_namespace(parent):
            return f"[{key}]"
        name = key.strip("'")
        return "the notebook's Out" if name in ("Out", "_oh") else f"global {parent['__name__']}.{name}"
    if isinstance(parent, (list, tuple)):
        return f"[{next((i for i, value in enumerate(parent) if value is child), '?')}]"
    if isinstance(parent, types.FrameType):
        is_traced = any(isinstance(each, types.TracebackType) for each in gc.get_referrers(parent))
        return f"a local of {parent.f_code.co_name}() ({'kept by a traceback' if is_traced else 'suspended'})"
    if isinstance(parent, threading.Thread):
        return f"thread {parent.name!r}"
    if isinstance(parent, functools._lru_cache_wrapper):
        return f"the cache of {getattr(parent, '__qualname__', '?')}"
    if isinstance(parent, types.CellType):
        return " (closure)"
    if isinstance(parent, type):
        return f"class {parent.__qualname__}"
    attributes = getattr(parent, "__dict__", {})
    if getattr(parent, "grad_fn", None) is not None:
        return " < the graph of a tensor"
    key = "grad" if getattr(parent, "grad", None) is child else next(
        (key for key, value in attributes.items() if value is child), "")
    kind = f" < {type(parent).__name__} {getattr(getattr(parent, 'func', parent), '__qualname__', '')}".rstrip()
    return "." + key if key else kind


def _short(key: Any) -> str:
    if not isinstance(key, (str, int, float, tuple, type(None))):
        return type(key).__name__  # the text of a tensor is its content
    text = repr(key)
    return text if len(text) <= 40 else text[:37] + "..."
