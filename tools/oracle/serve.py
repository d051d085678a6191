#!/usr/bin/env python3
"""Runs programs of this folder in forked copies of one process that has loaded torch already: loading takes seconds.

A line of standard input is a JSON object: `script` (drive.py), `conf` (allocator settings, "" for none), `arguments`.
The answer is a line too: `code` (negative: a signal), and what the program wrote, `stdout` and `stderr`. Started by
oracle.py.
"""
import importlib
import json
import os
import pathlib
import sys
import tempfile

import torch  # noqa: F401, loaded once for all copies


def run(request, out, errors):
    """In the copy; does not return."""
    os.dup2(out.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    sys.argv = [request["script"], *request["arguments"]]
    code = 1
    try:
        if request["conf"]:
            importlib.import_module("drive").set_settings(request["conf"])  # as the environment would have
        importlib.import_module(pathlib.Path(request["script"]).stem).main()
        code = 0
    except SystemExit as ending:
        code = int(ending.code or 0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(request):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = os.fork()
        if process == 0:
            run(request, out, errors)
        _, status = os.waitpid(process, 0)
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return {"code": os.waitstatus_to_exitcode(status), "stdout": texts[0], "stderr": texts[1]}


def main():
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
