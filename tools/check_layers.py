#!/usr/bin/env python3
"""Holds every include in src/ to the folder table in docs/architecture.md.

A row of the table reads `| src/NAME/ | what lives here | may include |`. The last cell names layers, separated by
commas; "all of the above" means all rows above; text in brackets and "standard library" name none. A layer may also
include itself. The rows go bottom to top: a row may only name rows above it, so the table itself can hold no cycle.

    tools/check_layers.py [--root FOLDER]
"""
import argparse
import pathlib
import re
import sys

ROW = re.compile(r"^\|\s*src/(\w+)/\s*\|.*\|([^|]*)\|\s*$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_table(text):
    """Layer -> set of layers it may include, and a list of complaints about the table."""
    allowed, complaints = {}, []
    for line in text.splitlines():
        row = ROW.match(line)
        if not row:
            continue
        layer, cell = row.group(1), re.sub(r"\(.*?\)", "", row.group(2)).strip()
        if cell == "all of the above":
            names = set(allowed)
        else:
            names = {name.strip() for name in cell.split(",")} - {"", "standard library"}
        for name in sorted(names - set(allowed)):
            complaints.append(f"docs/architecture.md: the row of src/{layer}/ names {name}, which is no row above it")
        allowed[layer] = names | {layer}
    return allowed, complaints


def check_file(path, layer, allowed):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        first, slash, _ = include.group(1).partition("/")
        if first == "support" and path.stem.endswith("_test"):
            continue
        if first == "oomscope" and slash:  # the public headers: value structs that need nothing of ours
            continue
        if not slash or first not in allowed:
            yield number, f'"{include.group(1)}" does not start at a layer of src/'
        elif first not in allowed[layer]:
            may = ", ".join(sorted(allowed[layer] - {layer})) or "no other layer"
            yield number, f'"{include.group(1)}" is not for src/{layer}/, which may include {may}'


def check(root):
    allowed, complaints = read_table((root / "docs/architecture.md").read_text())
    if not allowed:
        return ["docs/architecture.md: no folder table found"]
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc"))
        if folder.name not in allowed:
            if files:
                complaints.append(f"src/{folder.name}/: no row in docs/architecture.md")
            continue
        for path in files:
            for number, text in check_file(path, folder.name, allowed):
                complaints.append(f"{path.relative_to(root)}:{number}: {text}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    complaints = check(parser.parse_args().root)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
