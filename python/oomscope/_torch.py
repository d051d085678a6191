"""What this package asks of torch, by version, in one place (torch 2.1 on).

Some calls below are private to torch; each names where it comes from. Nothing here initialises CUDA.
"""
from __future__ import annotations

import contextlib
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
from typing import Any, Iterable

# What a thread is doing, in the words of src/types/phase.h, by where its innermost such frame is.
_PHASES = (("/torch/optim/", "step", "optimizer step"), ("/torch/optim/", "_init_group", "optimizer step"),
           ("/torch/utils/data/", "", "data loading"), ("/torch/autograd/", "backward", "backward"),
           ("/torch/nn/modules/module.py", "_call_impl", "forward"))
# In words joined by NUL: NAME=VALUE, or an option and the word behind it, where the name says that it is a secret.
_SECRET = re.compile(r"((?:^|\0)(?:-[\w.+-]*{0}\0|[\w.+-]*{0}=))[^\0]*"
                     .format(r"(?:token|key|password|passwd|secret|credentials?)"), re.I)


def torch_module() -> Any | None:
    """torch, imported if need be; None where it is not installed, or cannot load."""
    with contextlib.suppress(Exception):  # a broken torch must not end a script that only installs a watcher
        return importlib.import_module("torch")
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


def snapshot() -> tuple[bytes, bool]:
    """torch.cuda.memory._snapshot as a pickle, and whether it carries record_function scopes (torch 2.8 on). The cycle
    collector rests meanwhile: it would walk millions of new objects.

    Where frames are turned to text, torch looks for torch._inductor (py_symbolize in combined_traceback.cpp), and
    looking imports it: 3.4 s on the machine of docs/gpu-tests.md. A job that has not used it has no frames of it, so
    this thread finds an empty module there; others that ask meanwhile get the real one."""
    torch: Any = sys.modules["torch"]
    stand_in, this_thread = types.ModuleType("torch._inductor"), threading.get_ident()

    def load_for_others(name: str) -> Any:
        if threading.get_ident() == this_thread:
            raise AttributeError(name)
        return getattr(importlib.import_module("torch._inductor"), name)

    vars(stand_in)["__getattr__"] = load_for_others
    collects = gc.isenabled()
    gc.disable()
    if "torch._inductor" not in sys.modules:
        vars(torch).setdefault("_inductor", stand_in)
    try:
        state = torch.cuda.memory._snapshot()
        return pickle.dumps(state, protocol=4), "external_annotations" in state
    finally:
        if vars(torch).get("_inductor") is stand_in:
            del torch._inductor
        if collects:
            gc.enable()


def allocator_facts(device: int) -> dict[str, int]:
    """The counters that matter, in bytes, and the retries and failures so far."""
    stats = sys.modules["torch"].cuda.memory_stats(device)
    facts = {key: int(stats.get(key, 0)) for key in ("num_alloc_retries", "num_ooms")}
    for name in ("allocated", "reserved", "requested"):
        facts[name] = int(stats.get(f"{name}_bytes.all.current", 0))
        facts["peak_" + name] = int(stats.get(f"{name}_bytes.all.peak", 0))
    return facts


def versions_and_settings() -> dict[str, Any]:
    """Of all that moves memory about: versions, the environment variables that steer allocator, CUDA and NCCL, and the
    command. Behind names of secrets there is ***."""
    versions = {"python": platform.python_version(), "system": platform.platform()}
    torch = torch_module()
    if torch is not None:
        versions.update(torch=torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip)
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items())
                if name.startswith(("PYTORCH_", "CUDA_", "NCCL_", "TORCH_"))]
    return {"versions": versions, "settings": dict(each.split("=", 1) for each in _masked(settings)),
            "command": _masked(getattr(sys, "orig_argv", sys.argv))}


def _masked(words: list[str]) -> list[str]:
    return _SECRET.sub(r"\1***", "\0".join(words)).split("\0") if words else []


def process_group() -> Any | None:
    """torch.distributed, if this process has joined a job."""
    job = sys.modules.get("torch.distributed")
    return job if getattr(job, "is_initialized", lambda: False)() else None


def ranks() -> dict[str, int]:
    """rank and world of this process: torch.distributed's, else of the launcher's environment."""
    job = process_group()
    if job is not None:
        return {"rank": job.get_rank(), "world": job.get_world_size()}
    numbers = {name: os.environ.get(key, "") for name, key in (("rank", "RANK"), ("world", "WORLD_SIZE"))}
    return {name: int(text) if text.isdigit() else int(name == "world") for name, text in numbers.items()}


def in_backward() -> bool:
    """Is this thread inside an autograd pass?"""
    task = getattr(getattr(sys.modules.get("torch"), "_C", None), "_current_graph_task_id", None)
    return task is not None and task() != -1


def in_users_forward(thread: int | None) -> bool:
    """Is this that thread, in no backward's recomputation, and not looked at by torch.compile, which must see nothing
    of ours: no break in its graph, no guards?"""
    is_compiling = getattr(sys.modules["torch"].compiler, "is_compiling", None)
    return not (is_compiling is not None and is_compiling()) and threading.get_ident() == thread and not in_backward()


def phase_of_this_thread() -> str:
    """What the code that called us was doing."""
    if in_backward():  # where checkpointing runs forwards again
        return "backward"
    for frame, _ in traceback.walk_stack(sys._getframe(1)):
        for path, function, phase in _PHASES:
            if path in frame.f_code.co_filename and function in frame.f_code.co_name:
                return phase
    return "unknown"


def tensors_alive() -> list[Any]:
    """All that Python objects refer to."""
    return of_kind(gc.get_objects(), *tensor_kinds())


def tensor_kinds() -> tuple[type, ...]:
    torch = sys.modules.get("torch")
    return () if torch is None else (torch.Tensor,)


def of_kind(things: Iterable[Any], *kinds: type) -> list[Any]:
    """Each once. Without isinstance, which asks proxies for their class."""
    return list({id(each): each for each in things if issubclass(type(each), kinds)}.values())


def storages(tensors: Iterable[Any]) -> dict[int, tuple[Any, int]]:
    """By address, of each storage the first tensor and the bytes: views share one. Meta, fake and sparse
    tensors have none."""
    found: dict[int, tuple[Any, int]] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            if storage.data_ptr():
                found.setdefault(storage.data_ptr(), (tensor, storage.nbytes()))
        except Exception:
            continue
    return found
