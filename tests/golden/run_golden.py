#!/usr/bin/env python3
"""Runs the program on golden cases and compares what it prints, byte for byte.

A case is a folder of tests/golden/ with these files; all but `cmd` may be missing, which means empty (exit: 0).

    cmd      the command line, one line: oomscope why input.pickle --json
    stdin    what the program reads
    stdout, stderr, exit     what must come out
    mask     regular expressions, one a line, for what differs from run to run; each match is shown as [masked]
    *.pickle.json            compiled to *.pickle, so that a small input can be read and changed by hand
    any other file           input

The case runs in a copy of its folder, so it may write files. Two words in `cmd` stand for folders, and replace them in
the output too: {tests} is tests/data, {data} is OOMSCOPE_DATA (default ../shared/data): without that folder the
case is skipped, exit code 77. --update writes what came out into the case.

    tests/golden/run_golden.py --program build/release/bin/oomscope [--update] [CASE...]
"""
import argparse
import difflib
import json
import os
import pathlib
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unicodedata

GOLDEN = pathlib.Path(__file__).resolve().parent
ROOT = GOLDEN.parent.parent
SKIPPED = 77
COLUMNS = 80


class Skip(Exception):
    pass


# Given to the program as links beside the case, so that no line breaks elsewhere where the tree lies deeper.
LINKS = {"{tests}": "../tests", "{data}": "../data"}


def folders():
    return {"{tests}": str(ROOT / "tests/data"),
            "{data}": os.environ.get("OOMSCOPE_DATA") or str(ROOT.parent / "shared/data")}


def expected(case, name, default=""):
    path = case / name
    return path.read_text() if path.exists() else default


def arguments(case, program):
    line = expected(case, "cmd").strip()
    for word, folder in folders().items():
        if word in line and not os.path.isdir(folder):
            raise Skip(f"no folder {folder} (set OOMSCOPE_DATA)")
        line = line.replace(word, LINKS[word])
    words = shlex.split(line)
    if not words or words[0] != "oomscope":
        sys.exit(f"{case}/cmd: must start with oomscope")
    return [str(program), *words[1:]]


def run(case, program):
    """What came out, as a map from file name to text."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
    environment.update({key: value for key, value in os.environ.items() if key.startswith(("ASAN_", "UBSAN_"))})
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "case"
        shutil.copytree(case, folder)
        for word, target in folders().items():
            (folder / LINKS[word]).symlink_to(os.path.abspath(target))
        environment["HOME"] = scratch
        for fixture in folder.glob("*.pickle.json"):
            fixture.with_suffix("").write_bytes(pickle.dumps(json.loads(fixture.read_text()), protocol=4))
        result = subprocess.run(arguments(case, program), cwd=folder, env=environment, timeout=600,
                                input=expected(case, "stdin").encode(), capture_output=True)
    texts = {"stdout": result.stdout, "stderr": result.stderr}
    out = {name: normal(case, text.decode("utf-8", "backslashreplace")) for name, text in texts.items()}
    out["exit"] = f"{result.returncode}\n" if result.returncode != 0 else ""
    return out


def normal(case, text):
    for word, link in LINKS.items():
        text = text.replace(link, word)
    for pattern in expected(case, "mask").splitlines():
        text = re.sub(pattern, "[masked]", text)
    return text


def update(case, out):
    for name, text in out.items():
        path = case / name
        if text:
            path.write_text(text)
        elif path.exists():
            path.unlink()


def differences(case, out):
    for name, text in out.items():
        want = expected(case, name)
        if name == "exit":
            want, text = want.strip() or "0", text.strip() or "0"
        if want != text:
            lines = difflib.unified_diff(want.splitlines(), text.splitlines(), f"{name} expected", f"{name} printed",
                                         lineterm="")
            yield "\n".join(lines) or f"{name}: differs in the last newline"


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def too_wide(case, out):
    """Lines of prose and tables beyond the terminal; JSON and what is there to be pasted are as long as they are."""
    if "--json" in expected(case, "cmd"):
        return
    for line in out["stdout"].splitlines():
        is_pasted = line.startswith("    ") or re.search(r"PYTORCH_CUDA_ALLOC_CONF\W+=|oomscope |torch\.cuda", line)
        if width(line) > COLUMNS and not is_pasted:
            yield f"{width(line)} columns: {line}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/oomscope")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    names = options.cases or sorted(path.parent.name for path in GOLDEN.glob("*/cmd"))
    failed, skipped = [], []
    for name in names:
        case = GOLDEN / name
        try:
            out = run(case, options.program.resolve())
        except Skip as reason:
            print(f"{name}: SKIPPED, {reason}")
            skipped.append(name)
            continue
        if options.update:
            update(case, out)
            continue
        found = [*differences(case, out), *too_wide(case, out)]
        if found:
            failed.append(name)
            print(f"{name}: {expected(case, 'cmd').strip()}", *found, sep="\n")
    print(f"{len(names) - len(failed) - len(skipped)} right, {len(failed)} wrong, {len(skipped)} skipped")
    if failed:
        print("If the new output is better: tests/golden/run_golden.py --update " + " ".join(failed))
        return 1
    return SKIPPED if names and len(skipped) == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
