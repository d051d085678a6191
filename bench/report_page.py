#!/usr/bin/env python3
"""The report of a large recording: how long it takes to write, how large it is, and what it costs to look at.

    bench/report_page.py build/release/bin/oomscope SNAPSHOT.pickle [--runs 5]

SNAPSHOT is unpacked. Writing is timed as a whole process; the page is opened in headless Chromium by
web/test/measure.mjs, which prints first paint, the full timeline, the cost of a frame while zooming, and the memory of
the page's process. Medians, with the lowest and the highest.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

WEB = pathlib.Path(__file__).resolve().parent.parent / "web"


def measured(command):
    before = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed: {status}")
    return time.perf_counter() - before, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def browse(page, runs):
    command = ["node", WEB / "test" / "measure.mjs", page, str(runs)]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in output.stdout.splitlines()]


def show_page(pages):
    for key, unit, scale in (("first_paint_ms", "s", 1e3), ("ready_ms", "s", 1e3), ("frame_ms_median", "ms", 1),
                             ("frame_ms_most", "ms", 1), ("renderer_rss_loading", "MiB", 2**20),
                             ("renderer_rss", "MiB", 2**20), ("js_heap", "MiB", 2**20)):
        values = [page[key] / scale for page in pages if page.get(key) is not None]
        if values:
            print(f"page, {key.removesuffix('_ms')}: {spread(values)} {unit}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("snapshot")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        page = os.path.join(scratch, "report.html")
        command = [arguments.program, "report", arguments.snapshot, "-o", page]
        runs = [measured(command) for _ in range(arguments.runs)]
        print(f"report: {spread([run[0] for run in runs])} s, {spread([run[1] for run in runs])} s of processor time, "
              f"{spread([run[2] for run in runs], 0)} MiB")
        print(f"page: {os.path.getsize(page) / 2**20:.2f} MiB")
        show_page(browse(page, arguments.runs))


if __name__ == "__main__":
    main()
