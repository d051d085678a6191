"""free("model", "optimizer"): deletes names, clears what holds tensors unseen, and says who still holds the rest.

One search answers both what is behind the names, and who holds what remains of it: breadth first through whatever
objects refer to (gc.get_referents), so that each tensor is found by its shortest name. What is behind the names are the
tensors within reach of their values; who holds the rest is found from all globals and all locals of running functions.
What the collector does not see, since C++ holds it, is added: gradients, and the leaves of graphs.
"""
from __future__ import annotations

import ctypes
import functools
import gc
import re
import sys
import threading
import traceback
import types
from collections import defaultdict, deque
from typing import Any, Callable, Iterable

from . import _torch
from ._program import Table

MOST_SHOWN = 20
MOST_HOLDERS = 3  # named of a tensor
Roots = Iterable["tuple[str, Any]"]
_NOT_OWNED = type, types.ModuleType, types.FunctionType, types.FrameType  # they lead to what is no part of a value
_PARTS = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")  # of a module


class Freed(Table):
    """What free() did: freed bytes, cleared (text, bytes) and remaining (name, bytes, shape, holders), largest
    first. Bytes are those of distinct storages, on all devices."""

    def __init__(self) -> None:
        self.freed = 0
        self.cleared: list[tuple[str, int]] = []
        self.remaining: list[dict[str, Any]] = []

    def _rows(self) -> list[tuple[Any, ...]]:
        held, others = self.remaining[:MOST_SHOWN], self.remaining[MOST_SHOWN:]
        rows: list[tuple[Any, ...]] = [("", "bytes"), ("freed", self.freed)]
        rows += [(f"cleared {what}", count) for what, count in self.cleared]
        rows += [("still held", _bytes(self.remaining))] if held else []
        rows += [(f"  {each['name']} {each['shape']}", each["bytes"], "by " + " and ".join(each["holders"]))
                 for each in held]
        return rows + [(f"  [{len(others)} others]", _bytes(others))] if others else rows


def free(*names: str) -> Freed:
    """Deletes these names where the caller stands, clears the stored traceback and a notebook's Out and _, collects
    cycles, returns cached memory to the driver, and reports what of them is still alive, and who holds it.

    print(oomscope.free("model", "optimizer")). Raises NameError, before anything is deleted, if a name is not there.
    In a function a name is set to None: it cannot be unbound from outside. Takes some seconds in a process of a million
    objects. Memory is freed when nothing shares it any more: views and detached tensors are holders too.
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
    names[name] = None
    if sys.version_info < (3, 13):  # from there on it is written through (PEP 667)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _storages_behind(roots: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a storage: name and shape of the first tensor on it, bytes, address, and a weak reference of torch's."""
    tensors = {id(each): each for each in _torch.tensors_alive()}
    names = _names_of(set(tensors), roots.items(), owned=True)
    if names:
        from torch.multiprocessing.reductions import StorageWeakRef
    return [{"name": _PARTS.sub(r".\1", names[id(tensor)][0]), "shape": tuple(tensor.shape), "bytes": count,
             "address": address, "storage": StorageWeakRef(tensor.untyped_storage())}
            for address, (tensor, count) in _torch.storages(tensors[each] for each in names).items() if count]


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
    known = gc.get_objects()  # what comes from now on is this search's own
    tensors = defaultdict(list)
    for each in _torch.tensors_alive():
        for address in _torch.storages([each]):
            tensors[address].append(id(each))
    names = _names_of({each for row in rows for each in tensors[row["address"]]}, *_roots(known))
    for row in rows:
        holders = [name for each in tensors[row["address"]] for name in names.get(each, ())]
        row["holders"] = holders[:MOST_HOLDERS] or ["something outside Python: C++"]


def _roots(known: list[Any]) -> tuple[Roots, ...]:
    """Names that a person can act on; behind them, what no name leads to: objects, and at last bare containers."""
    ends = types.FrameType, *_torch.tensor_kinds()
    bare = dict, list, tuple, set, types.CellType, *ends
    spaces = (("", vars(each)) for each in list(sys.modules.values()) if isinstance(each, types.ModuleType))
    return ((root for roots in (_locals(), spaces) for root in roots),
            ((type(each).__name__, each) for each in known if not _is(each, *bare)),
            ((type(each).__name__, each) for each in known if not _is(each, *ends)))


def _locals() -> Roots:
    """Of all running functions but ours. Nothing is left behind: before 3.13 a frame keeps the dictionary that f_locals
    made, and with it its values; where nobody else has that dictionary it is emptied again."""
    threads = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, top in sys._current_frames().items():
        where = "" if ident == threading.get_ident() else f" in thread {threads.get(ident, ident)!r}"
        for frame, _ in traceback.walk_stack(top):
            if str(frame.f_globals.get("__name__")).startswith("oomscope."):
                continue
            yield "", frame.f_globals  # of exec(), which is in no module
            names = frame.f_locals
            if names is frame.f_globals:
                continue
            yield from [(f"{name}, a local of {frame.f_code.co_name}(){where}: ", each) for name, each in names.items()]
            if sys.version_info < (3, 13) and frame.f_code.co_flags & 1 and sys.getrefcount(names) <= 3:
                names.clear()  # the references are the frame's, ours, and the argument's


def _names_of(wanted: set[int], *groups: Roots, owned: bool = False) -> dict[int, list[str]]:
    """By id of each wanted object the ways to it from the first group of roots from which there are any, shortest
    first, at most MOST_HOLDERS. `owned`: through what belongs to the roots alone."""
    found: dict[int, list[str]] = defaultdict(list)
    came: dict[int, Any] = {}  # by id: the first that referred to it, or the text of a root
    nodes: set[Any] = set()
    for roots in groups:
        if len(found) == len(wanted):
            break
        queue: deque[Any] = deque()
        for text, root in roots:
            if id(root) in wanted and len(found[id(root)]) < MOST_HOLDERS:
                found[id(root)].append(text.rstrip(": "))
            if id(root) not in came:
                came[id(root)] = text
                queue.append(root)
        while queue:
            parent = queue.popleft()
            for child in (*gc.get_referents(parent), *_hidden(parent, nodes, owned)):
                if id(child) in wanted and len(found[id(child)]) < MOST_HOLDERS:
                    found[id(child)].append(_way(came, parent, child))
                if id(child) not in came:
                    came[id(child)] = parent
                    if gc.is_tracked(child) and not (owned and _is(child, *_NOT_OWNED)):
                        queue.append(child)
    return found


def _hidden(parent: Any, nodes: set[Any], owned: bool) -> list[Any]:
    """What C++ keeps of a tensor: its gradient, and the leaves of its graph, each node once for all tensors."""
    if not _is(parent, *_torch.tensor_kinds()):
        return []
    leaves, ahead = [parent.grad if parent.is_leaf else None], [] if owned else [parent.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            ahead += [following for following, _ in node.next_functions]
            leaves.append(getattr(node, "variable", None))  # AccumulateGrad's
    return leaves


def _way(came: dict[int, Any], parent: Any, child: Any) -> str:
    """The way to the child through the parent, from its root or the module in whose globals it is."""
    before = came[id(parent)]
    if _is(parent, dict) and _is(dict.get(parent, "__name__"), str) and "__builtins__" in parent:
        way = f"global {parent['__name__']}"
    else:
        way = before if isinstance(before, str) else _way(came, before, parent)
    return way + _step(parent, child, before)


def _step(parent: Any, child: Any, owner: Any) -> str:
    """How the parent names the child. `owner`: who referred to the parent."""
    if _is(parent, dict):
        keys = [key for key, value in list(dict.items(parent)) if value is child]  # whatever a subclass says
        if not keys:
            return " as a key"
        return f".{keys[0]}" if "__builtins__" in parent or _is_attributes(parent, owner) else f"[{_short(keys[0])}]"
    if _is_attributes(child, parent):
        return ""
    if _is(parent, list, tuple):
        return f"[{next((i for i, value in enumerate(parent) if value is child), '?')}]"
    if _is(parent, types.FrameType):
        return f" < a local of {parent.f_code.co_name}(), kept by a traceback or suspended"
    if _is(parent, functools._lru_cache_wrapper):
        return f" < the cache of {getattr(parent, '__qualname__', '?')}"
    if _is(parent, types.CellType):
        return " (closure)"
    if _is(parent, *_torch.tensor_kinds()) and _is(child, *_torch.tensor_kinds()):
        return ".grad" if parent.is_leaf else " < the graph of a tensor"
    key = next((key for key, value in _attributes(parent).items() if value is child), None)
    kind = f" < {type(parent).__name__} {getattr(getattr(parent, 'func', parent), '__qualname__', '')}".rstrip()
    return f".{key}" if key else kind


def _is(value: Any, *kinds: type) -> bool:
    """Without isinstance, which asks proxies for their class."""
    return issubclass(type(value), kinds)


def _attributes(value: Any) -> Any:
    try:
        return vars(value)
    except Exception:  # whatever a proxy raises
        return {}


def _is_attributes(value: Any, owner: Any) -> bool:
    return _is(value, dict) and (_is(owner, type) or _attributes(owner) is value)


def _short(key: Any) -> str:
    if not isinstance(key, (str, int, float, tuple, type(None))):
        return type(key).__name__  # the text of a tensor is its content
    text = repr(key)
    return text if len(text) <= 40 else text[:37] + "..."
