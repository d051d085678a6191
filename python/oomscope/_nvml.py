"""Who else is on the card: NVML through ctypes, asked at a failure only, in a thread that may hang without harm.

Structures and calls are those of nvml.h 12: nvmlMemory_t, nvmlProcessInfo_t (v2 and v3 have the same members).
"""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


_UNKNOWN = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE


def card(uuid: str | None, seconds: float = 1.0) -> dict[str, Any] | None:
    """{total, free, used, driver, processes: [{pid, bytes or None, own}]} of the card with that UUID, all in bytes.
    None: no NVML, no such card, or no answer within `seconds`."""
    answer: list[dict[str, Any]] = []

    def ask() -> None:
        try:
            answer.append(_ask(uuid))
        except Exception:  # no library, no permission, another layout: the context goes without
            pass

    thread = threading.Thread(target=ask, name="oomscope-nvml", daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else None


def _ask(uuid: str | None) -> dict[str, Any]:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    _check(nvml.nvmlInit_v2())
    handle = ctypes.c_void_p()
    if uuid is None:
        _check(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)))
    else:
        name = uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid
        _check(nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)))
    memory = _Memory()
    _check(nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)))
    driver = ctypes.create_string_buffer(96)
    _check(nvml.nvmlSystemGetDriverVersion(driver, 96))
    return {"total": memory.total, "free": memory.free, "used": memory.used, "driver": driver.value.decode(),
            "processes": _processes(nvml, handle)}


def _processes(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    call = getattr(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None) or nvml.nvmlDeviceGetComputeRunningProcesses_v2
    count = ctypes.c_uint(128)
    rows = (_Process * 128)()
    _check(call(handle, ctypes.byref(count), rows))
    # In a container of its own a process may stand in the list as PID 1, or not at all.
    return [{"pid": row.pid, "bytes": None if row.used == _UNKNOWN else row.used, "own": row.pid == os.getpid()}
            for row in rows[:count.value]]


def _check(code: int) -> None:
    if code != 0:
        raise OSError(f"NVML error {code}")
