#!/usr/bin/env python3
"""Checks, or with --fix sets, the layout of our C++ with clang-format 14, the version that .clang-format is written for.

Another version lays out some lines differently, so without version 14 the check is skipped (exit code 77). It also
looks for what needs no clang-format: tabs, spaces at line ends, a missing last newline.

    tools/check_format.py [--fix] [FILE...]
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tests", "bench", "cmake", "tools", "examples")
VERSION = "14"


def clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", text):
                return program
    return None


def tree(suffixes):
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path


def plain_complaints(path):
    text = path.read_text(errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield f"{path}:{number}: a tab"
        if line != line.rstrip():
            yield f"{path}:{number}: space at the end of the line"
    if text and not text.endswith("\n"):
        yield f"{path}: no newline at the end"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    files = options.files or list(tree((".h", ".cc", ".c")))
    complaints = [found for path in options.files or list(tree((".h", ".cc", ".c", ".py", ".sh", ".cmake")))
                  for found in plain_complaints(path)]
    program = clang_format()
    if program and files:
        mode = ["-i"] if options.fix else ["--dry-run", "--Werror"]
        result = subprocess.run([program, "--style=file", *mode, *files], capture_output=True, text=True)
        if result.returncode != 0:
            wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.M)))
            complaints += [f"{name}: not laid out as clang-format {VERSION} does" for name in wrong] or [result.stderr]
    for complaint in complaints:
        print(complaint)
    if complaints:
        print("Run: make format")
        return 1
    if not program:
        print(f"clang-format {VERSION} is not installed: the layout was not checked")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
