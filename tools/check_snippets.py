#!/usr/bin/env python3
"""Checks that what remedies offer to paste can be pasted: Python compiles, shell lines parse.

The file holds snippets, each ended by a zero byte: its place on the first line ("python", "bash", …), then its lines.
remedies_test writes it for all releases and frameworks. What cannot be parsed here (PowerShell, cmd) must at least be
one line a command, without tabs.

    tools/check_snippets.py FILE
"""
import pathlib
import re
import subprocess
import sys


def python_error(lines):
    try:
        compile(lines, "snippet", "exec")
    except SyntaxError as error:
        return str(error)
    return None


def notebook_error(lines):
    """A cell: its magics (%env …) are no Python."""
    return python_error("\n".join("" if line.startswith("%") else line for line in lines.split("\n")))


def shell_error(lines):
    result = subprocess.run(["bash", "-n"], input=lines + "\n", capture_output=True, text=True)
    return result.stderr.strip() or None


def dockerfile_error(lines):
    return None if re.fullmatch(r"(ENV \w+=\S+\n?)+", lines + "\n") else "no ENV line"


def plain_error(lines):
    return "a tab or a blank line" if "\t" in lines or "\n\n" in lines else None


CHECKS = {"python": python_error, "notebook": notebook_error, "bash": shell_error, "sbatch": shell_error,
          "dockerfile": dockerfile_error, "powershell": plain_error, "cmd": plain_error}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = 0
    snippets = pathlib.Path(sys.argv[1]).read_text().split("\0")[:-1]
    for snippet in snippets:
        place, _, lines = snippet.partition("\n")
        error = CHECKS[place](lines)
        if error:
            failed += 1
            print(f"{place}: {error}\n{lines}\n")
    print(f"{len(snippets)} snippets, {failed} wrong")
    return 1 if failed or not snippets else 0


if __name__ == "__main__":
    sys.exit(main())
