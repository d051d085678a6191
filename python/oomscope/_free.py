"""free("model", "optimizer"): deletes names, clears what holds tensors unseen, and says who still holds the rest.

The storages behind the names are noted first, by weak reference. From all tensors that then still share one of them the
search goes upwards through gc.get_referrers, all at once and a level at a time, until names are found that a person can
act on. What is invisible to the collector is looked up before: locals of running frames, and gradients and graphs,
which C++ holds.
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
from typing import Any, Callable, Iterator

from . import _torch
from ._program import Table, size

DEEPEST = 12  # levels of containers between a tensor and a name
MOST_OBJECTS = 2000  # looked behind on each level
MOST_NODES = 1_000_000  # of graphs, looked at
MOST_SHOWN = 20


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
            rows.append(("still held", size(_bytes(self.remaining)), ""))
        rows += [(f"  {each['name']} {each['shape']}", size(each["bytes"]), "by " + " and ".join(each["holders"]))
                 for each in held]
        if others:
            rows.append((f"  [{len(others)} others]", size(_bytes(others)), ""))
        return rows


def free(*names: str) -> Freed:
    """Deletes these names where the caller stands, clears the stored traceback and a notebook's Out and _, collects
    cycles, returns cached memory to the driver, and reports what of them is still alive, and who holds it.

    print(oomscope.free("model", "optimizer")). Raises NameError, before anything is deleted, if a name is not there.
    In a function, a name is unbound where Python allows it (before 3.12), else set to None. Takes about a second in a
    large process. Memory is freed when nothing shares it any more: views and detached tensors are holders too.
    Source: the gc module, and torch's weak references of storages; what C++ alone holds has no name."""
    caller, result = sys._getframe(1), Freed()
    scope = {**caller.f_globals, **caller.f_locals}
    missing = [str(name) for name in names if name not in scope] if names else ["(none given)"]
    if missing:
        raise NameError(f"free: no such name here: {', '.join(missing)[:100]}")
    found = _storages_behind({name: scope[name] for name in names})
    del scope
    for name in dict.fromkeys(names):
        _delete(caller, name)
    held = _clear(result, _alive(found), "the stored traceback", _clear_traceback)
    _name_holders(held)  # what only cycles hold has no name once they are collected
    after = _clear(result, held, "reference cycles", gc.collect)
    after = _clear(result, after, "the notebook's Out and _", _clear_notebook)
    cuda = _torch.cuda()
    if cuda is not None:
        cuda.empty_cache()
    _name_holders(after)
    result.freed = _bytes(found) - _bytes(after)
    result.remaining = sorted(after, key=lambda row: -int(row["bytes"]))
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
            own = [*value.named_parameters(), *value.named_buffers()] if isinstance(value, torch.nn.Module) else []
            queue += [(f"{name}.{key}", each) for key, each in (*own, *vars(value).items())]


def _storages_behind(roots: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a storage: name and shape of the first tensor on it, bytes, address, and a weak reference of torch's."""
    tensors = list(_tensors_of(roots))
    names = {id(tensor): name for name, tensor in tensors}
    if tensors:
        from torch.multiprocessing.reductions import StorageWeakRef
    return [{"name": names[id(tensor)], "shape": tuple(tensor.shape), "bytes": count, "address": address,
             "storage": StorageWeakRef(tensor.untyped_storage())}
            for address, (tensor, count) in _torch.storages(tensor for _, tensor in tensors).items() if count]


def _alive(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if not row["storage"].expired()]


def _bytes(rows: list[dict[str, Any]]) -> int:
    return sum(row["bytes"] for row in rows)


def _clear(result: Freed, rows: list[dict[str, Any]], what: str, action: Callable[[], Any]) -> list[dict[str, Any]]:
    """What is still alive of the rows after the action."""
    action()
    after, freed = _alive(rows), [row for row in rows if row["storage"].expired()]
    if freed:
        through = dict.fromkeys(holder for row in freed for holder in row.get("holders", ()))
        named = " through " + ", ".join(list(through)[:3]) if action is gc.collect else ""
        result.cleared.append((what + named, _bytes(freed)))
    return after


def _clear_traceback() -> None:
    for name in ("last_traceback", "last_value", "last_type", "last_exc"):
        stored = vars(sys).pop(name, None)
        trace = getattr(stored, "__traceback__", stored)
        if isinstance(trace, types.TracebackType):
            traceback.clear_frames(trace)


def _clear_notebook() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.user_ns.get("Out", {}).clear()
        for names in (shell.user_ns, shell.user_ns_hidden, vars(shell.displayhook)):
            names.update({name: "" for name in names if name.startswith("_") and not name.strip("_0123456789")})
        shell.last_execution_result = None


# --- who holds it ----------------------------------------------------------------------------------------------------

def _name_holders(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    known = {id(each) for each in gc.get_objects()}  # what comes from now on is this search's own
    local_names = _names_in_frames()
    tensors = defaultdict(list)
    for each in _torch.tensors_alive():
        for address in _torch.storages([each]):
            tensors[address].append(each)
    parents = _parents([each for row in rows for each in tensors[row["address"]]], known)
    for row in rows:
        row["holders"] = _holders(tensors[row["address"]], parents, local_names)


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


def _parents(tensors: list[Any], known: set[int]) -> dict[int, list[Any]]:
    """By id of an object, who of the known refers to it, from these upwards."""
    parents: dict[int, list[Any]] = defaultdict(list)
    hidden = _hidden(tensors)
    for child, parent in hidden:
        parents[id(child)].append(parent)
    level = [*tensors, *(parent for _, parent in hidden)]
    seen = {id(each) for each in level}
    for _ in range(DEEPEST):
        children = {id(each) for each in level}
        above = []
        for referrer in gc.get_referrers(*level) if level else []:
            if id(referrer) not in known or isinstance(referrer, types.FrameType) and _is_running(referrer):
                continue
            for child in children.intersection(map(id, gc.get_referents(referrer))):
                parents[child].append(referrer)
            if id(referrer) not in seen and not _is_end(referrer):
                seen.add(id(referrer))
                above.append(referrer)
        level = above[:MOST_OBJECTS]
    return parents


def _hidden(tensors: list[Any]) -> list[tuple[Any, Any]]:
    """(what is held, who holds it), of these tensors, where the collector does not see that: a gradient by its tensor,
    a leaf by the results of the graphs that it is in."""
    wanted, everything = {id(each) for each in tensors}, _torch.tensors_alive()
    gradients = ((each.grad, each) for each in everything if each.is_leaf)
    graphs = ((leaf, each) for each in everything if each.grad_fn is not None for leaf in _leaves_of(each))
    return [pair for pair in (*gradients, *itertools.islice(graphs, MOST_NODES)) if id(pair[0]) in wanted]


def _leaves_of(tensor: Any) -> Iterator[Any]:
    """Of each node of the graph that the tensor keeps the leaf that it accumulates into, or None."""
    seen, nodes = set(), [tensor.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
            yield getattr(node, "variable", None)  # AccumulateGrad's


def _holders(tensors: list[Any], parents: dict[int, list[Any]], local_names: dict[int, str]) -> list[str]:
    """The names that lead to them, nearest first, at most three; else the last of what leads nowhere."""
    found: dict[str, None] = {}
    queue: deque[tuple[Any, str]] = deque((tensor, "") for tensor in tensors)
    seen = {id(tensor) for tensor in tensors}
    last = "something outside Python: C++"
    while queue and len(found) < 3:
        value, tail = queue.popleft()
        last = f"{type(value).__name__}{tail}" if tail else last
        if id(value) in local_names:
            found[local_names[id(value)] + (f": {tail}" if tail else "")] = None
        for parent in parents.get(id(value), ()):
            if _is_end(parent):
                found[_step(parent, value) + tail] = None
            elif id(parent) not in seen:
                seen.add(id(parent))
                queue.append((parent, _step(parent, value) + tail))
    return list(found)[:3] or [last]


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
        keys = [key for key, value in parent.items() if value is child] or ["as a key"]
        return f"global {parent['__name__']}.{keys[0]}" if _is_namespace(parent) else f"[{_short(keys[0])}]"
    if isinstance(parent, (list, tuple)):
        return f"[{next((i for i, value in enumerate(parent) if value is child), '?')}]"
    if isinstance(parent, types.FrameType):
        return f"a local of {parent.f_code.co_name}(), kept by a traceback or suspended"
    if isinstance(parent, threading.Thread):
        return f"thread {parent.name!r}"
    if isinstance(parent, functools._lru_cache_wrapper):
        return f"the cache of {getattr(parent, '__qualname__', '?')}"
    if isinstance(parent, types.CellType):
        return " (closure)"
    if isinstance(parent, type):
        return f"class {parent.__qualname__}"
    if getattr(parent, "grad_fn", None) is not None:
        return " < the graph of a tensor"
    key = "grad" if getattr(parent, "grad", None) is child else next(
        (key for key, value in getattr(parent, "__dict__", {}).items() if value is child), "")
    kind = f" < {type(parent).__name__} {getattr(getattr(parent, 'func', parent), '__qualname__', '')}".rstrip()
    return "." + key if key else kind


def _short(key: Any) -> str:
    if not isinstance(key, (str, int, float, tuple, type(None))):
        return type(key).__name__  # the text of a tensor is its content
    text = repr(key)
    return text if len(text) <= 40 else text[:37] + "..."
