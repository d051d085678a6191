#!/usr/bin/env python3
"""Checks that what the documents name exists, and that the commands they show print what they show.

In README.md, CONTRIBUTING.md and docs/**/*.md:
- `some/path.ext` in backticks exists, seen from the root, src/, include/ or the document's folder. Left alone:
  paths that start with / or ~, that hold a placeholder in capitals (x/NAME.h) or *, what a build makes (build/), and
  PyTorch's own files (torch/, c10/).
- `name()` or `space::name()` in backticks is called or defined somewhere in our sources. A dotted name
  (`torch.cuda.empty_cache()`) is somebody else's.
- [text](target) leads to a file.
- "see Note [Title]" in a source or a document has its "Note [Title]".
- A block that opens with ```console and whose first line starts with `$ oomscope` is run, from the root, and must print
  (on stdout) what stands below. A line that is just … stands for any number of lines. --update writes the real output
  into the block. Without --program the blocks are not run.

    tools/check_docs.py [--root FOLDER] [--program FILE] [--update]
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

CODE_FOLDERS = ("src", "include", "tools", "tests", "bench", "cmake", "python", "examples")
CODE_SUFFIXES = (".h", ".c", ".cc", ".py", ".sh", ".cmake")
FENCE = re.compile(r"^( *)(```+)(\w*)\s*$")
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"^[\w.-]+(/[\w.-]+)*/[\w-]+\.[\w.]+$")
FUNCTION = re.compile(r"^(?:\w+::)*(\w+)\(\)$")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
NOTE = re.compile(r"(see )?Note \[([^\]]+)\]")
ANY_LINES = "…"


def documents(root):
    pages = [root / "README.md", root / "CONTRIBUTING.md"] + sorted((root / "docs").rglob("*.md"))
    return [page for page in pages if page.exists()]


def sources(root):
    for folder in CODE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CODE_SUFFIXES and path.is_file():
                yield path


def prose(text):
    """(line number, line) outside fenced blocks."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence = match.group(2)
        elif fence is not None and line.strip() == fence:
            fence = None
        elif fence is None:
            yield number, line


def path_exists(name, page, root):
    if name.startswith(("build/", "torch/", "c10/")) or re.search(r"(^|[/._-])[A-Z]{2,}([/._-]|$)", name):
        return True
    return any((base / name).exists() for base in (root, root / "src", root / "include", page.parent))


def check_names(page, root, code):
    for number, line in prose(page.read_text()):
        where = f"{page.relative_to(root)}:{number}"
        for span in SPAN.findall(line):
            function = FUNCTION.match(span)
            if function and not re.search(rf"\b{function.group(1)}\s*\(", code):
                yield f"{where}: `{span}` is no function of ours"
            if PATH.match(span) and not path_exists(span, page, root):
                yield f"{where}: `{span}` does not exist"
        for target in LINK.findall(SPAN.sub("", line)):
            if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists():
                yield f"{where}: the link to {target} leads nowhere"


def check_notes(root, texts):
    titles = {title for _, text in texts for see, title in NOTE.findall(text) if not see}
    for path, text in texts:
        for see, title in NOTE.findall(text):
            if see and title not in titles and "..." not in title:
                yield f"{path.relative_to(root)}: there is no Note [{title}]"


def run(command, program, root):
    environment = dict(os.environ, NO_COLOR="1", COLUMNS="80", LC_ALL="C.UTF-8", TZ="UTC")
    environment["PATH"] = f"{program.parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(["bash", "-c", command], cwd=root, env=environment, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    return result.stdout.rstrip("\n").split("\n") if result.stdout.strip() else []


def same(expected, actual):
    pattern = "\n".join("(?:.*\n)*?.*" if line == ANY_LINES else re.escape(line.rstrip()) for line in expected)
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in actual)) is not None


def check_blocks(page, root, program, update):
    """Complaints about console blocks; with update, rewrites those that differ."""
    complaints, out, lines, at = [], [], page.read_text().split("\n"), 0
    while at < len(lines):
        match = FENCE.match(lines[at])
        out.append(lines[at])
        at += 1
        if not match:
            continue
        end = next((i for i in range(at, len(lines)) if lines[i].strip() == match.group(2)), len(lines))
        block = lines[at:end]
        if match.group(3) == "console" and block and block[0].startswith("$ oomscope"):
            block, found = check_block(block, f"{page.relative_to(root)}:{at + 1}", root, program)
            complaints += found
        out += block + lines[end:end + 1]
        at = end + 1
    if update and complaints:
        page.write_text("\n".join(out))
        return [complaint.split("\n")[0] + " (updated)" for complaint in complaints]
    return complaints


def check_block(block, where, root, program):
    complaints, fresh, at = [], [], 0
    while at < len(block):
        command = block[at][2:]
        end = next((i for i in range(at + 1, len(block)) if block[i].startswith("$ ")), len(block))
        expected = block[at + 1:end]
        actual = expected
        if command.startswith("oomscope"):
            actual = run(command, program, root)
            if not same(expected, actual):
                difference = "\n".join(difflib.unified_diff(expected, actual, "document", "program", lineterm=""))
                complaints.append(f"{where}: `{command}` prints something else\n{difference}")
            else:
                actual = expected
        fresh += [block[at]] + actual
        at = end
    return fresh, complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    root = options.root.resolve()
    code = [(path, path.read_text(errors="replace")) for path in sources(root)]
    pages = documents(root)
    everything = "\n".join(text for _, text in code)
    complaints = [found for page in pages for found in check_names(page, root, everything)]
    complaints += check_notes(root, code + [(page, page.read_text()) for page in pages])
    if options.program:
        for page in pages:
            complaints += check_blocks(page, root, options.program.resolve(), options.update)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
