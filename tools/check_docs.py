#!/usr/bin/env python3
"""Checks that what the documents name exists, and that the commands they show print what they show.

In README.md, README.zh-CN.md, CONTRIBUTING.md and docs/**/*.md:
- `some/path.ext` in backticks exists, seen from the root, src/, include/ or the document's folder. Left alone:
  paths that start with / or ~, that hold a placeholder in capitals (x/NAME.h) or *, what a build makes (build/), and
  PyTorch's own files (torch/, c10/).
- `name()` or `space::name()` in backticks is called or defined somewhere in our sources. A dotted name
  (`torch.cuda.empty_cache()`) is somebody else's.
- [text](target) leads to a file.
- A caveat's code in our sources has its sentence "caveat.CODE" in src/words/.
- "see Note [Title]" in a source or a document has its "Note [Title]".
- A block that opens with ```console and whose first line starts with `$ oomscope` or `$ python3 examples/` is run, from
  the root, and must print (on stdout) what stands below. A line that is just … stands for any number of lines. --update
  writes the real output into the block. Without --program the blocks are not run. $OOMSCOPE_DATA in a command is the folder of larger
  recordings (default ../shared/data): without it the block is skipped, which is said.
- `why --explain` and the pages agree, in English (docs/) and Chinese (docs/zh/): a page a cause in causes/, which names
  the cause's remedies with their texts (--update writes these) and links its claims; a section a claim in claims.md,
  with a console block, or with a line that begins "No command shows it: " (the Chinese likewise) and says on what it rests.

    tools/check_docs.py [--root FOLDER] [--program FILE] [--update]
"""
import argparse
import difflib
import json
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
REMEDY = re.compile(r"^- \*\*`([\w-]+)`\*\*: .*$", re.M)
CAVEAT = re.compile(r'(?:\.code = |Caveat{|note(?:_count)?\(snapshot, |add\(warnings, )"([\w-]+)"(?=,\s*\.values|,\s*{|\);|, \w)')
ANY_LINES = "…"
DATA = "$OOMSCOPE_DATA"
RUN = ("$ oomscope", "$ python3 examples/")
NO_COMMAND = ("\nNo command shows it: ", "\n没有命令可以演示：")
LANGUAGES = {"en": ("", "{text}. Cost: {cost}."), "zh": ("zh/", "{text}。代价：{cost}。")}


def documents(root):
    pages = [root / "README.md", root / "README.zh-CN.md", root / "CONTRIBUTING.md"] + sorted((root / "docs").rglob("*.md"))
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


def data_folder(root):
    return pathlib.Path(os.environ.get("OOMSCOPE_DATA") or root.parent / "shared/data")


def check_errors(root, code):
    """Keys that the code gives to errors and differences, against src/words/."""
    words = read_words(root, "en")
    for path, text in code:
        if path.suffix not in (".cc", ".h") or path.name.endswith("_test.cc") or "src" not in path.parts:
            continue
        for key in re.findall(r'"((?:error|difference|progress|verify)\.[a-z0-9.-]*[a-z0-9])"', text):
            if key not in words:
                yield f"{path.relative_to(root)}: the key {key} is not in src/words/"
        for sentence in re.findall(r'Error\{[^{}]*?\.what = "([^"\n]* [^"\n]*)"', text):
            yield f"{path.relative_to(root)}: an error says \"{sentence}\" itself; make it a key of src/words/*/errors.json"


def check_caveats(root, code):
    """A caveat is its code alone: the sentence is in src/words/."""
    if not (root / "src/words").is_dir():
        return
    words = read_words(root, "en")
    for path, text in code:
        if not path.is_relative_to(root / "src") or path.name.endswith("_test.cc"):
            continue
        for name in CAVEAT.findall(text):
            if f"caveat.{name}" not in words:
                yield f"{path.relative_to(root)}: src/words/ has no sentence caveat.{name}"


def run(command, program, root):
    environment = dict(os.environ, NO_COLOR="1", COLUMNS="80", LC_ALL="C.UTF-8", TZ="UTC",
                       OOMSCOPE_DATA=str(data_folder(root)))
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
        if match.group(3) == "console" and block and block[0].startswith(RUN):
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
        if command.startswith("oomscope") and DATA in command and not data_folder(root).is_dir():
            print(f"{where}: SKIPPED, no folder {data_folder(root)} (set OOMSCOPE_DATA): `{command}`")
        elif block[at].startswith(RUN):
            actual = run(command, program, root)
            if not same(expected, actual):
                difference = "\n".join(difflib.unified_diff(expected, actual, "document", "program", lineterm=""))
                complaints.append(f"{where}: `{command}` prints something else\n{difference}")
            else:
                actual = expected
        fresh += [block[at]] + actual
        at = end
    return fresh, complaints


# --- the pages that `why --explain` names ---------------------------------------------------------------------------

def explained(program):
    result = subprocess.run([program, "why", "--explain", "--json"], stdin=subprocess.DEVNULL, text=True, check=True,
                            stdout=subprocess.PIPE, timeout=60)
    return json.loads(result.stdout)


def read_words(root, language):
    words = {}
    for path in sorted((root / "src/words" / language).glob("*.json")):
        words.update(json.loads(path.read_text()))
    return words


def remedy_line(remedy, words, form, english):
    """As the pages list a remedy. Where the text has a placeholder, what the program says in English fills it."""
    text = words[f"remedy.{remedy['id']}.text"]
    if "{" in text:
        before, after = english[f"remedy.{remedy['id']}.text"].split("{setting}")
        text = text.replace("{setting}", remedy["text"][len(before):len(remedy["text"]) - len(after)])
    return f"- **`{remedy['id']}`**: " + form.format(text=text, cost=words[f"remedy.{remedy['id']}.cost"])


def check_cause_page(page, cause, remedy_lines, root, update):
    name = page.relative_to(root)
    if not page.exists():
        yield f"{name}: there is no such page for the cause {cause['id']}"
        return
    text = page.read_text()
    if REMEDY.findall(text) != cause["remedies"]:
        yield f"{name}: must list these remedies, in this order: {', '.join(cause['remedies'])}"
        return
    yield from check_remedy_texts(page, name, text, remedy_lines, update)
    if cause["by_phase"] and "](../phases.md)" not in text:
        yield f"{name}: does not link phases.md, though its remedies depend on the phase"
    for claim in cause["claims"]:
        if f"claims.md#{claim}" not in text:
            yield f"{name}: does not link the claim {claim}"


def check_remedy_texts(page, name, text, remedy_lines, update):
    fresh = REMEDY.sub(lambda match: remedy_lines[match.group(1)], text)
    if fresh != text:
        yield f"{name}: a remedy's text is not that of src/words/" + (" (updated)" if update else "")
        if update:
            page.write_text(fresh)


def check_phases_page(page, phases, frames, remedy_lines, words, root, update):
    name = page.relative_to(root)
    text = page.read_text() if page.exists() else ""
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    have = [(section.split("\n", 1)[0], REMEDY.findall(section)) for section in sections]
    wanted = [(words[f"instant.{each['phase']}"], each["remedies"]) for each in phases if each["phase"] != "unknown"]
    wanted.append((words["explain.by-frames"], frames))
    if have != wanted:
        yield f"{name}: must have these sections with these remedies: {wanted}"
        return
    yield from check_remedy_texts(page, name, text, remedy_lines, update)


def check_claims_page(page, claims, root):
    name = page.relative_to(root)
    sections = re.split(r"^## ", page.read_text(), flags=re.M)[1:] if page.exists() else []
    titles = [section.split("\n", 1)[0] for section in sections]
    wanted = [claim["id"] for claim in claims]
    if titles != wanted:
        missing = [claim for claim in wanted if claim not in titles]
        yield f"{name}: must have a section for each claim, in their order" + (f"; missing: {missing}" if missing else "")
    for title, section in zip(titles, sections):
        shows = any(f"```console\n{command}" in section for command in RUN)
        if not shows and not any(words in section for words in NO_COMMAND):
            yield f"{name}: the claim {title} has no command that shows it, and does not say on what it rests"


def check_explained(root, program, update):
    if not (root / "src/words").is_dir():
        return
    known = explained(program)
    english = read_words(root, "en")
    for language, (folder, form) in LANGUAGES.items():
        words = read_words(root, language)
        lines = {remedy["id"]: remedy_line(remedy, words, form, english) for remedy in known["remedies"]}
        for cause in known["causes"]:
            page = root / "docs" / folder / "causes" / f"{cause['id']}.md"
            yield from check_cause_page(page, cause, lines, root, update)
        yield from check_phases_page(root / "docs" / folder / "phases.md", known["phases"], known["frames"], lines, words,
                                     root, update)
        yield from check_claims_page(root / "docs" / folder / "claims.md", known["claims"], root)


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
    complaints += check_caveats(root, code)
    complaints += check_errors(root, code)
    complaints += check_notes(root, code + [(page, page.read_text()) for page in pages])
    if options.program:
        complaints += check_explained(root, options.program.resolve(), options.update)
        for page in pages:
            complaints += check_blocks(page, root, options.program.resolve(), options.update)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
