"""The README's Python section runs, as it stands there."""
import argparse
import re
import sys

import pytest
import torch
from conftest import ROOT


def blocks(title):
    """The Python code of one section, block by block."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.S)


def test_the_python_section_runs(in_folder, fresh, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py", "--debug-memory"])
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(n):
        if n > 20:
            raise RuntimeError("CUDA out of memory.")
        model(torch.randn(n, 8)).sum().backward()
        optimizer.step()

    def train():
        for _ in range(3):
            step(4)

    names = {"train": train, "step": step, "model": model, "parser": argparse.ArgumentParser(),
             "load": lambda: None, "__name__": "readme"}
    code = blocks("In Python")
    assert len(code) == 5
    for block in code[:4]:
        exec(compile(block, "README.md", "exec"), names)
    assert names["largest"] == 20 and len(names["peaks"].steps) == 3 and "model" not in names
    assert "still held" in capsys.readouterr().out, "the step above holds the model"
    assert {path.name for path in in_folder.iterdir()} == {"peaks.json"}
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="NVIDIA"):
            exec(compile(code[4], "README.md", "exec"), names)
