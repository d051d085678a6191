#!/usr/bin/env python3
"""Seeded violations: each check of the tree must find what it is there to find, and nothing in a clean tree."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

TABLE = """
| folder | what lives here | may include |
|---|---|---|
| src/base/ | words | standard library |
| src/types/ | structs | base |
| src/cli/ | commands (main.cc) | all of the above |
"""

PROGRAM = """#!/bin/sh
echo "you said $*"
echo 3 events
"""


class Tree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.write("docs/architecture.md", TABLE)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_tool(self, tool, *arguments):
        command = [sys.executable, ROOT / "tools" / tool, "--root", self.root, *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


class Layers(Tree):
    def test_clean_tree_passes(self):
        self.write("src/base/result.h", '#include <vector>\n#include "base/other.h"\n')
        self.write("src/types/ids.h", '#include "base/result.h"\n')
        self.write("src/types/ids_test.cc", '#include "support/recordings.h"\n')
        self.write("src/cli/main.cc", '#include "types/ids.h"\n')
        self.assertEqual(self.run_tool("check_layers.py"), (0, ""))

    def test_include_of_a_later_layer_is_found(self):
        self.write("src/base/result.h", '#pragma once\n#include "types/ids.h"\n')
        code, text = self.run_tool("check_layers.py")
        self.assertEqual(code, 1)
        self.assertIn('src/base/result.h:2: "types/ids.h" is not for src/base/, which may include no other layer', text)

    def test_include_without_a_layer_is_found(self):
        self.write("src/base/result.h", '#include "caveat.h"\n')
        self.assertIn("does not start at a layer", self.run_tool("check_layers.py")[1])

    def test_layer_without_a_row_is_found(self):
        self.write("src/extra/a.cc", "\n")
        self.assertIn("src/extra/: no row", self.run_tool("check_layers.py")[1])

    def test_row_that_names_a_later_row_is_found(self):
        self.write("docs/architecture.md", TABLE.replace("standard library", "types"))
        self.write("src/base/result.h", "\n")
        self.assertIn("names types, which is no row above it", self.run_tool("check_layers.py")[1])


class Docs(Tree):
    def page(self, text):
        return self.write("docs/page.md", text)

    def test_what_exists_passes(self):
        self.write("src/base/sizes.h", "int64_t round_size(int64_t size);  // Note [Why 512]\n")
        self.page("`src/base/sizes.h`, `base/sizes.h`, `round_size()`, `torch.cuda.empty_cache()`, `/proc/meminfo.x`, "
                  "`src/LAYER/x_test.cc`, [the map](architecture.md), see Note [Why 512]\n")
        self.assertEqual(self.run_tool("check_docs.py"), (0, ""))

    def test_what_does_not_exist_is_found(self):
        self.write("src/base/sizes.h", "\n")
        self.page("`src/base/gone.h`\n`gone()`\n[x](gone.md)\nsee Note [Gone]\n")
        code, text = self.run_tool("check_docs.py")
        self.assertEqual(code, 1)
        for found in ("page.md:1: `src/base/gone.h`", "page.md:2: `gone()`", "page.md:3: the link", "no Note [Gone]"):
            self.assertIn(found, text)

    def test_text_in_a_block_names_nothing(self):
        self.page("```text\n`src/base/gone.h`\n```\n")
        self.assertEqual(self.run_tool("check_docs.py"), (0, ""))

    def block(self, output):
        program = self.write("bin/oomscope", PROGRAM)
        program.chmod(0o755)
        page = self.page(f"Before\n```console\n$ oomscope show x\n{output}```\nAfter\n")
        return page, "--program", program

    def test_block_with_the_real_output_passes(self):
        for output in ("you said show x\n3 events\n", "you said show x\n…\n", "…\n3 events\n"):
            self.assertEqual(self.run_tool("check_docs.py", *self.block(output)[1:]), (0, ""))

    def test_block_with_other_output_is_found_and_updated(self):
        page, *arguments = self.block("4 events\n")
        code, text = self.run_tool("check_docs.py", *arguments)
        self.assertEqual(code, 1)
        self.assertIn("-4 events", text)
        self.run_tool("check_docs.py", *arguments, "--update")
        self.assertEqual(page.read_text(), "Before\n```console\n$ oomscope show x\nyou said show x\n3 events\n```\nAfter\n")
        self.assertEqual(self.run_tool("check_docs.py", *arguments), (0, ""))


class Explained(Tree):
    """The pages that `why --explain` names."""
    KNOWN = {"causes": [{"id": "leak", "remedies": ["detach"], "claims": ["cache"], "by_phase": False}],
             "remedies": [{"id": "detach", "text": "let go"}], "claims": [{"id": "cache"}], "phases": [],
             "frames": ["detach"]}
    PAGE = "- **`detach`**: let go. Cost: none.\n- [cache](../claims.md#cache)\n"
    CLAIMS = "# Claims\n\n## cache\n\n```console\n$ oomscope x\n…\n```\n"

    def setUp(self):
        super().setUp()
        self.write("src/words/en/remedies.json", '{"remedy.detach.text": "let go", "remedy.detach.cost": "none", '
                   '"explain.by-frames": "By frames"}')
        self.write("src/words/zh/remedies.json", '{"remedy.detach.text": "放手", "remedy.detach.cost": "无", '
                   '"explain.by-frames": "按帧"}')
        self.write("docs/phases.md", "## By frames\n\n- **`detach`**: let go. Cost: none.\n")
        self.write("docs/zh/phases.md", "## 按帧\n\n- **`detach`**: 放手。代价：无。\n")
        self.write("docs/causes/leak.md", self.PAGE)
        self.write("docs/zh/causes/leak.md", "- **`detach`**: 放手。代价：无。\n- [c](../claims.md#cache)\n")
        self.write("docs/claims.md", self.CLAIMS)
        self.write("docs/zh/claims.md", self.CLAIMS)
        self.program = self.write("bin/oomscope", f"#!/bin/sh\necho '{json.dumps(self.KNOWN)}'\n")
        self.program.chmod(0o755)

    def complaints(self, *more):
        return self.run_tool("check_docs.py", "--program", self.program, *more)[1]

    def test_pages_that_agree_pass(self):
        self.assertEqual(self.complaints(), "")

    def test_missing_pages_and_sections_are_found(self):
        (self.root / "docs/zh/causes/leak.md").unlink()
        self.write("docs/claims.md", "# Claims\n\n## cache\n\nNo command.\n")
        self.write("docs/zh/claims.md", "# Claims\n")
        text = self.complaints()
        for found in ("docs/zh/causes/leak.md: there is no such page", "cache has no command", "missing: ['cache']"):
            self.assertIn(found, text)

    def test_another_text_of_a_remedy_is_found_and_updated(self):
        page = self.write("docs/causes/leak.md", self.PAGE.replace("let go", "hold on"))
        self.assertIn("not that of src/words/", self.complaints())
        self.complaints("--update")
        self.assertEqual(page.read_text(), self.PAGE)

    def test_caveat_without_a_sentence_is_found(self):
        self.write("src/base/a.cc", 'Caveat{.code = "cut-off", .values = {}};\n')
        self.assertIn("no sentence caveat.cut-off", self.complaints())


class Glibc(unittest.TestCase):
    def test_program_above_the_floor_is_found(self):
        result = subprocess.run([ROOT / "tools/check_glibc.sh", sys.executable, "2.0"], capture_output=True, text=True)
        if result.returncode == 77:
            self.skipTest("no objdump")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not start on glibc 2.0", result.stderr)


if __name__ == "__main__":
    unittest.main()
