#!/usr/bin/env python3
"""Lines of Python code by file, without blank lines, comments and docstrings.

    tools/count_python.py [FOLDER]      default: python/oomscope
"""
import ast
import io
import sys
import tokenize
from pathlib import Path

NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text):
    lines = {line for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in NO_CODE
             for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "python/oomscope")
    counts = {path: code_lines(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}
    for path, count in counts.items():
        print(f"{count:5}  {path.relative_to(folder)}")
    print(f"{sum(counts.values()):5}  total")


if __name__ == "__main__":
    main()
