"""What this package asks of torch, by version, in one place (torch 2.1 on; every answer may be None).

The calls below are private to torch; each names where it comes from. Nothing here initialises CUDA.
"""
from __future__ import annotations

import contextlib
import gc
import inspect
import os
import pickle
import platform
import sys
import types
from typing import Any, Callable, Iterator

SIZES = {2**40: "TiB", 2**30: "GiB", 2**20: "MiB", 2**10: "KiB"}


def format_bytes(count: int | None) -> str:
    """As the program prints sizes: 1.50 GiB. None: unknown."""
    if count is None:
        return "unknown"
    for unit, name in SIZES.items():
        if abs(count) >= unit:
            return f"{count / unit:,.2f} {name}"
    return f"{count} B"


def torch_module() -> Any | None:
    """torch, imported if need be; None where it is not installed or broken."""
    try:
        import torch
        return torch
    except Exception:  # a torch that is there and cannot load must not end a script that only installs a watcher
        return None


def when_cuda_starts(call: Callable[[], None]) -> None:
    """Runs `call` as soon as CUDA is initialised, or now if it is (torch.cuda._lazy_call): installing a watcher must
    not make a context, which would break jobs that fork or choose their device later."""
    torch = torch_module()
    if torch is not None:
        torch.cuda._lazy_call(call)


def cuda_is_on() -> bool:
    """Has this process used CUDA? Never imports or initialises anything."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork())


def start_history(max_events: int, stacks: str) -> None:
    """The allocator's ring of events (torch.cuda.memory._record_memory_history). Stacks of requests only: those of
    frees cost as much again, and `why` needs them for zero_grad alone, which optimizers annotate."""
    torch = torch_module()
    assert torch is not None
    options: dict[str, Any] = {"context": "alloc", "stacks": stacks, "max_entries": max_events}
    implementation = getattr(torch.cuda.memory, "_record_memory_history_impl", None)
    if implementation and "global_record_annotations" in inspect.signature(implementation).parameters:
        options["global_record_annotations"] = True  # marks of every thread
    torch.cuda.memory._record_memory_history("all", **options)


def attach_observer(observer: Callable[[int, int, int, int], None]) -> None:
    """observer(device, request, limit or total, free), in the thread whose request failed (c10's OutOfMemoryObserver).
    It cannot be taken off again."""
    torch = torch_module()
    assert torch is not None
    torch._C._cuda_attach_out_of_memory_observer(observer)


def dump_snapshot(path: str) -> bool:
    """torch.cuda.memory._dump_snapshot, with the cycle collector at rest: it would walk millions of new objects.
    Returns whether the snapshot carries record_function scopes (torch 2.8 on)."""
    torch = torch_module()
    assert torch is not None
    collects = gc.isenabled()
    gc.disable()
    try:
        with _inductor_stays_out(torch):
            snapshot = torch.cuda.memory._snapshot()
        with open(path + ".part", "wb") as file:
            pickle.dump(snapshot, file, protocol=4)
        os.replace(path + ".part", path)
        return "external_annotations" in snapshot
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def _inductor_stays_out(torch: Any) -> Iterator[None]:
    """Where frames are turned to text, torch looks for torch._inductor (py_symbolize in combined_traceback.cpp), and
    looking imports it: 3.4 s on the machine of docs/gpu-tests.md. A job that has not used it has no frames of it."""
    if "torch._inductor" in sys.modules or "_inductor" in vars(torch):
        yield
        return
    nothing = types.SimpleNamespace()
    torch._inductor = nothing
    try:
        yield
    finally:
        if vars(torch).get("_inductor") is nothing:
            del torch._inductor


def allocator_facts(device: int) -> dict[str, int]:
    """The counters that matter, in bytes, and the retries and failures so far."""
    torch = torch_module()
    assert torch is not None
    stats = torch.cuda.memory_stats(device)
    names = {"allocated": "allocated_bytes.all.current", "reserved": "reserved_bytes.all.current",
             "requested": "requested_bytes.all.current", "peak_allocated": "allocated_bytes.all.peak",
             "peak_reserved": "reserved_bytes.all.peak", "retries": "num_alloc_retries", "ooms": "num_ooms"}
    return {name: int(stats.get(key, 0)) for name, key in names.items()}


def versions() -> dict[str, Any]:
    """Of everything that moves memory about."""
    torch = torch_module()
    found: dict[str, Any] = {"python": platform.python_version(), "system": platform.platform()}
    if torch is not None:
        found.update(torch=torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip)
        if cuda_is_on():
            found["cudnn"] = torch.backends.cudnn.version()
    return found


def settings() -> dict[str, str]:
    """Environment variables that steer the allocator, CUDA and NCCL."""
    prefixes = ("PYTORCH_", "CUDA_", "NCCL_", "TORCH_")
    return {name: value for name, value in sorted(os.environ.items())
            if name.startswith(prefixes) and not any(word in name for word in ("TOKEN", "KEY", "SECRET"))}


def ranks() -> dict[str, int]:
    """rank, local_rank and world of this process: torch.distributed's, else the launcher's environment."""
    distributed = sys.modules.get("torch.distributed")
    found = {"rank": _number("RANK", "SLURM_PROCID"), "local_rank": _number("LOCAL_RANK", "SLURM_LOCALID"),
             "world": _number("WORLD_SIZE", "SLURM_NTASKS") or 1}
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        found.update(rank=distributed.get_rank(), world=distributed.get_world_size())
    return found


def always_call(module: Any) -> dict[str, bool]:
    """For register_module_forward_hook: called after an error too, so that counts of modules entered stay right
    (torch 2.1 on)."""
    has = "always_call" in inspect.signature(module.register_module_forward_hook).parameters
    return {"always_call": True} if has else {}


def in_backward() -> bool:
    """Is this thread inside an autograd pass?"""
    torch = sys.modules.get("torch")
    task = getattr(torch._C, "_current_graph_task_id", None) if torch is not None else None
    return bool(task and task() != -1)


def phase_of_this_thread() -> str:
    """What the code that called us was doing, in the words of src/types/phase.h. A thread without Python frames of its
    own is one of autograd's."""
    places = []
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename.replace("\\", "/")
        if "/oomscope/" not in path:
            places.append((path, frame.f_code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    if in_backward() or not places:
        return "backward"
    for path, function in places:
        if "/torch/optim/" in path and function.startswith(("step", "_init_group")):
            return "optimizer step"
        if "/torch/utils/data/" in path:
            return "data loading"
        if "/torch/autograd/" in path and "backward" in function:
            return "backward"
        if path.endswith("/torch/nn/modules/module.py") and function.endswith("_call_impl"):
            return "forward"
    return "unknown"


def is_oom(error: BaseException) -> bool:
    """Out of memory in any of torch's wordings, on the card or the host."""
    if type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error)
    return isinstance(error, (RuntimeError, MemoryError)) and any(
        words in text for words in ("out of memory", "can't allocate memory", "not enough memory",
                                    "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"))


def _number(*names: str) -> int:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0
