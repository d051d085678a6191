"""Where a process puts what it found: one folder a process, or under a launcher one folder a rank."""
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from . import _torch

_NTH = ("", "-second", "-third")


def job_folder(root: str) -> Path:
    """Where the ranks of one job meet. The launcher's name of the job and its restart tell jobs apart; all ranks see
    the same without asking each other."""
    environment = os.environ
    name = environment.get("SLURM_JOB_ID") or environment.get("TORCHELASTIC_RUN_ID") or ""
    if name in ("", "none"):
        name = f"{environment.get('MASTER_ADDR', 'local')}-{environment.get('MASTER_PORT', '0')}"
        if environment.get("LOCAL_WORLD_SIZE", environment.get("WORLD_SIZE")) == environment.get("WORLD_SIZE"):
            name += f"-{os.getppid()}"  # one node: the launcher, which all ranks descend from
    restart = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    plain = "".join(c if c.isalnum() or c in "-._" else "_" for c in f"job-{name}-{restart}")
    return Path(root) / plain


def case_folder(root: str, ordinal: int) -> Path:
    """For the process's failure of that number (from 0), made now. A rank's folder is emptied of an earlier run."""
    ranks = _torch.ranks()
    if ranks["world"] > 1:
        folder = job_folder(root) / f"rank{ranks['rank']}{_NTH[ordinal]}"
        for stale in folder.glob("*"):
            if stale.name in ("oom.pickle", "context.json", "oom.pickle.marks.json"):
                stale.unlink()
    else:
        folder = Path(root) / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}{_NTH[ordinal]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all: whoever reads it never sees half a file."""
    part = path.with_name(path.name + f".{os.getpid()}.part")
    part.write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")
    os.replace(part, path)
