#!/usr/bin/env python3
"""What `why` reads in the texts of our recordings against what PyTorch itself reported beside them.

Every summary.txt: each number equals result.json's statistic to the digit that was printed. Every oom.txt: the kind is
that of the message, and the limit that of the recording. Without the recordings it is skipped, loudly.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def explain(program, path):
    run = subprocess.run([program, "why", str(path), "--json"], capture_output=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"{path}: {run.stderr.decode(errors='replace')}")
    return json.loads(run.stdout)


def printed_step(truth, name):
    """memory_summary() chooses the unit of a column by the metric's row for all pools, and cuts off below it."""
    parts = name.split(".")
    value, step = truth.get(f"{parts[0]}.all.{parts[-1]}", truth[name]), 1
    base, most = (1024, 768 * 1024) if "bytes" in name else (1000, 750 * 1000)
    while value / step >= most:
        step *= base
    return step


def check_summary(program, path):
    truth = json.loads((path.parent / "result.json").read_text())["stats"]
    answer = explain(program, path)
    stats = answer["summaries"][0]["stats"]
    wrong = []
    for name, got in stats.items():
        if name not in truth:
            wrong.append(f"{name} is no statistic")
        elif not 0 <= truth[name] - got < printed_step(truth, name):
            wrong.append(f"{name}: {got}, reported {truth[name]}")
    if answer["numbers"]["allocated"] != stats["allocated_bytes.all.current"]:
        wrong.append("numbers.allocated")
    return wrong, len(stats)


def expected_kinds(text):
    if "more than 1EB" in text:
        return ["not_memory"]
    if "Tried to allocate" not in text:
        return ["gpu_oom_first_alloc_or_context"]
    if "allowed;" in text:
        return ["gpu_oom"]
    return ["gpu_oom_other_process"]


def check_oom(program, path):
    text = path.read_text()
    answer = explain(program, path)
    wrong = []
    if answer["kind"] not in expected_kinds(text):
        wrong.append(f"kind {answer['kind']}, expected {expected_kinds(text)}")
    result = path.parent / "result.json"
    limit = re.search(r"([\d.]+) (GiB|MiB) allowed;", text)
    if limit:
        want = float(limit[1]) * UNITS[limit[2]]
        if abs(answer["numbers"]["limit"] - want) > 1:
            wrong.append(f"limit {answer['numbers']['limit']}, printed {want}")
        cap = json.loads(result.read_text()).get("cap_mib") if result.exists() else 0
        if cap and abs(answer["numbers"]["limit"] - cap * (1 << 20)) > 0.006 * UNITS[limit[2]]:
            wrong.append(f"limit {answer['numbers']['limit']}, set {cap} MiB")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("OOMSCOPE_DATA") or ROOT.parent / "shared/data") / "h200"
    if not data.is_dir():
        print(f"skipped: no folder {data} (set OOMSCOPE_DATA)")
        return SKIPPED
    failed, numbers, summaries, failures = 0, 0, 0, 0
    for path in sorted(data.rglob("summary.txt")):
        wrong, count = check_summary(options.program, path)
        numbers += count
        summaries += 1
        failed += bool(wrong)
        for line in wrong[:5]:
            print(f"{path.relative_to(data)}: {line}")
    for path in sorted(data.rglob("oom.txt")):
        wrong = check_oom(options.program, path)
        failures += 1
        failed += bool(wrong)
        for line in wrong:
            print(f"{path.relative_to(data)}: {line}")
    print(f"{summaries} summaries with {numbers} numbers, {failures} failures: {failed} files differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
