"""The package and the program for the tests on a card. OOMSCOPE_PROGRAM names the program."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = os.environ.get("OOMSCOPE_PACKAGE", str(ROOT / "python"))
sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("OOMSCOPE_PROGRAM", str(ROOT / "build/release/bin/oomscope"))

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    collect_ignore_glob = ["test_*.py"]
