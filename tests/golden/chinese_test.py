#!/usr/bin/env python3
"""Runs every golden case in Chinese and looks for English that is left in the answer.

What may be English is what people paste or quote: commands (four blanks of indent or a command's words), names of
settings and functions, the message of the log itself, PyTorch's own words about a setting. Everything else that reads
like a sentence of four or more English words is a text that is not in src/words/.

    tests/golden/chinese_test.py --program build/release/bin/oomscope [CASE...]
"""
import argparse
import pathlib
import re
import sys

import run_golden

# Four words in a row, of which one belongs to sentences.
WORDS = re.compile(r"[A-Za-z][a-z']*(?:[ ,;:]+[A-Za-z][a-z']*){3,}")
OF_SENTENCES = re.compile(r"\b(the|a|an|of|is|are|was|were|to|and|in|for|with|that|not|from|it|by|no|at|on|or)\b")
COMMAND = re.compile(r"^ {4}|^  (torch|python|os\.|nvidia-smi|free|dmesg|cat|kubectl|sacct|CUDA_|print\()|oomscope |export |\$env:")
# Messages are quoted as they are.
QUOTED = ("Unrecognized key", "in Accelerator allocator config", "is killed by signal", "CUDA out of memory")


def in_chinese(line):
    return line if "--lang" in line else line + " --lang zh"


def quoted_text(case):
    """All that the case gives to the program, without blanks: an answer may quote it, wrapped as it likes."""
    texts = [path.read_text(errors="replace") for path in case.iterdir()
             if path.is_file() and path.name not in ("stdout", "stderr") and path.suffix not in (".zst", ".pickle")]
    return re.sub(r"\s+", "", "".join(texts))


def english_lines(case, program):
    original = run_golden.expected

    def with_language(folder, name, default=""):
        text = original(folder, name, default)
        return in_chinese(text.strip()).replace("--lang en", "--lang zh") if name == "cmd" else text

    run_golden.expected = with_language
    try:
        out = run_golden.run(case, program)
    finally:
        run_golden.expected = original
    given = quoted_text(case)
    for line in (out["stdout"] + out["stderr"]).splitlines():
        if COMMAND.search(line) or any(words in line for words in QUOTED):
            continue
        for match in WORDS.finditer(line):
            text = match.group(0)
            if OF_SENTENCES.search(text) and re.sub(r"\s+", "", text) not in given:
                yield f"{text!r} in: {line}"
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=run_golden.ROOT / "build/release/bin/oomscope")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    names = options.cases or sorted(path.parent.name for path in run_golden.GOLDEN.glob("*/cmd"))
    wrong = 0
    for name in names:
        case = run_golden.GOLDEN / name
        command = run_golden.expected(case, "cmd").split()
        if "--json" in command or "--help" in command or len(command) < 3:
            continue  # JSON and the help are English
        try:
            found = list(english_lines(case, options.program.resolve()))
        except run_golden.Skip as reason:
            print(f"{name}: SKIPPED, {reason}")
            continue
        if found:
            wrong += 1
            print(f"{name}: {' '.join(command)}", *found, sep="\n  ")
    print(f"{wrong} cases with English in the Chinese answer")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
