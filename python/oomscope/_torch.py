"""What this package asks of torch, by version, in one place (torch 2.1 on).

Some calls below are private to torch; each names where it comes from. Nothing here initialises CUDA.
"""
from __future__ import annotations

import gc
import importlib
import os
import pickle
import platform
import re
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any, Iterable, Iterator

# What a thread is doing, in the words of src/types/phase.h, by where its innermost such frame is.
_PHASES = (("/torch/optim/", "step", "optimizer step"), ("/torch/optim/", "_init_group", "optimizer step"),
           ("/torch/utils/data/", "", "data loading"), ("/torch/autograd/", "backward", "backward"),
           ("/torch/nn/modules/module.py", "_call_impl", "forward"))
_OOM_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED",
              "CUDNN_STATUS_ALLOC_FAILED")
_SECRET = re.compile(r"[\w.+-]*(token|key|password|passwd|secret|credentials?)", re.I)
_rests = threading.Event()  # the cycle collector, for a dump


def torch_module() -> Any | None:
    """torch, imported if need be; None where it is not installed, or cannot load."""
    try:
        import torch
        return torch
    except Exception:  # a broken torch must not end a script that only installs a watcher
        return None


def cuda() -> Any | None:
    """torch.cuda, if this process has used it. Imports and initialises nothing."""
    module = getattr(sys.modules.get("torch"), "cuda", None)
    return module if module is not None and module.is_initialized() and not module._is_in_bad_fork() else None


def start_history(max_events: int, stacks: str) -> None:
    """The allocator's ring of events (torch.cuda.memory._record_memory_history). Stacks of requests only: those of
    frees cost as much again, and `why` needs them for zero_grad alone, which optimizers annotate."""
    memory = sys.modules["torch"].cuda.memory
    options: dict[str, Any] = {"context": "alloc", "stacks": stacks, "max_entries": max_events}
    implementation = getattr(memory, "_record_memory_history_impl", None)
    if implementation and "global_record_annotations" in implementation.__code__.co_varnames:
        options["global_record_annotations"] = True  # marks of every thread
    memory._record_memory_history("all", **options)


def dump_snapshot(path: Path) -> bool:
    """torch.cuda.memory._dump_snapshot, with the cycle collector at rest: it would walk millions of new objects.
    Returns whether the snapshot carries record_function scopes (torch 2.8 on).

    Where frames are turned to text, torch looks for torch._inductor (py_symbolize in combined_traceback.cpp), and
    looking imports it: 3.4 s on the machine of docs/gpu-tests.md. A job that has not used it has no frames of it."""
    torch: Any = sys.modules["torch"]
    stand_in, part = _NotLoaded("torch._inductor"), path.with_name(path.name + ".part")
    if gc.isenabled():
        _rests.set()
    gc.disable()
    if "torch._inductor" not in sys.modules:
        vars(torch).setdefault("_inductor", stand_in)
    try:
        snapshot = torch.cuda.memory._snapshot()
        with open(part, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)
        os.replace(part, path)
        return "external_annotations" in snapshot
    finally:
        part.unlink(missing_ok=True)  # where the disk was full
        if vars(torch).get("_inductor") is stand_in:
            del torch._inductor
        collects_again()


def collects_again() -> None:
    """The collector works again, in a child too that was forked while another thread wrote a dump."""
    if _rests.is_set():
        _rests.clear()
        gc.enable()


class _NotLoaded(types.ModuleType):
    """A module that the thread which made this finds empty; for all others it is loaded when they ask."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._empty_for = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if threading.get_ident() == self._empty_for:
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def allocator_facts(device: int) -> dict[str, int]:
    """The counters that matter, in bytes, and the retries and failures so far."""
    stats = sys.modules["torch"].cuda.memory_stats(device)
    facts = {key: int(stats.get(key, 0)) for key in ("num_alloc_retries", "num_ooms")}
    for name in ("allocated", "reserved", "requested"):
        facts[name] = int(stats.get(f"{name}_bytes.all.current", 0))
        facts["peak_" + name] = int(stats.get(f"{name}_bytes.all.peak", 0))
    return facts


def versions_and_settings() -> dict[str, Any]:
    """Of all that moves memory about: versions, and the environment variables that steer allocator, CUDA and NCCL."""
    versions = {"python": platform.python_version(), "system": platform.platform()}
    torch = torch_module()
    if torch is not None:
        versions.update(torch=torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip)
    settings = {name: value for name, value in sorted(os.environ.items())
                if name.startswith(("PYTORCH_", "CUDA_", "NCCL_", "TORCH_"))
                and not _SECRET.fullmatch(name)}
    return {"versions": versions, "settings": settings, "command": _masked(getattr(sys, "orig_argv", sys.argv))}


def _masked(words: list[str]) -> list[str]:
    """A command without the values of what is named a token, key, password or secret."""
    shown, follows = [], False
    for word in words:
        name, equals, _ = word.partition("=")
        is_secret = _SECRET.fullmatch(name) is not None
        shown.append("***" if follows else f"{name}=***" if is_secret and equals else word)
        follows = is_secret and not equals and name.startswith("-")
    return shown


def ranks() -> dict[str, int]:
    """rank and world of this process: torch.distributed's, else of the launcher's environment."""
    job = sys.modules.get("torch.distributed")
    if job is not None and job.is_available() and job.is_initialized():
        return {"rank": job.get_rank(), "world": job.get_world_size()}
    numbers = {name: os.environ.get(key, "") for name, key in (("rank", "RANK"), ("world", "WORLD_SIZE"))}
    return {name: int(text) if text.isdigit() else int(name == "world") for name, text in numbers.items()}


def in_backward() -> bool:
    """Is this thread inside an autograd pass?"""
    task = getattr(getattr(sys.modules.get("torch"), "_C", None), "_current_graph_task_id", None)
    return task is not None and task() != -1


def is_traced() -> bool:
    """Is torch.compile looking at the caller? Then there is nothing for it to see: no break in its graph, no guards."""
    import torch
    is_compiling = getattr(torch.compiler, "is_compiling", None)
    return is_compiling is not None and is_compiling()


def phase_of_this_thread() -> str:
    """What the code that called us was doing. A thread without Python frames of its own is one of autograd's."""
    ours = os.path.dirname(__file__)
    codes = [frame.f_code for frame, _ in traceback.walk_stack(sys._getframe(1))
             if not frame.f_code.co_filename.startswith(ours)]
    if in_backward() or not codes:
        return "backward"
    for code in codes:
        for path, function, phase in _PHASES:
            if path in code.co_filename and function in code.co_name:
                return phase
    return "unknown"


def tensors_alive() -> list[Any]:
    """All that Python objects refer to."""
    torch = sys.modules.get("torch")
    return [] if torch is None else [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]


def storages(tensors: Iterable[Any]) -> dict[int, tuple[Any, int]]:
    """By address, of each storage the first tensor and the bytes: views share one. Fake and sparse tensors have none."""
    found: dict[int, tuple[Any, int]] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            found.setdefault(storage.data_ptr(), (tensor, storage.nbytes()))
        except Exception:
            continue
    return found


def weak_storage(tensor: Any) -> Any:
    """Says with expired() whether the tensor's memory is freed: nothing shares it any more, in Python or C++."""
    from torch.multiprocessing.reductions import StorageWeakRef
    return StorageWeakRef(tensor.untyped_storage())


def leaves_of(tensor: Any) -> Iterator[Any]:
    """Of each node of the graph that the tensor keeps the leaf that it accumulates into, or None."""
    seen, nodes = set(), [tensor.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
            yield getattr(node, "variable", None)  # AccumulateGrad's


def bytes_of(tensors: Iterable[Any]) -> int:
    """Of distinct storages."""
    return sum(count for _, count in storages(tensors).values())


def is_oom(error: BaseException) -> bool:
    """Out of memory in any of torch's wordings, on the card or the host."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, (RuntimeError, MemoryError)) and any(words in str(error) for words in _OOM_WORDS))
