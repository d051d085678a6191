#!/usr/bin/env python3
"""Checks the oracle itself: torch 2.11 on fake_cuda.cc against recordings of torch 2.11 on a real card.

    tools/oracle/recordings.py --program build/release/bin/oomscope --folder FOLDER --data DATA [--only TEXT]

FOLDER as for oracle.py, DATA the folder of the recordings (one folder a run with result.json and *snapshot.pickle.zst).
Every request of a recording goes through torch again; the card places segments where the real one did. A limit that no
result.json tells is the one that oomscope infers. Prints one row a recording; exit code 1 if an allocation or a driver
event is not where the real card had it.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import oracle  # noqa: E402

RELEASE = "2.11.0"


def told_limit(result):
    """The limit that the program's error names, and how far it may be rounded; None without one."""
    told = re.search(r"([0-9.]+) (MiB|GiB) allowed", result.get("error") or "")
    if not told:
        return None
    unit = {"MiB": 1 << 20, "GiB": 1 << 30}[told[2]]
    return float(told[1]) * unit, unit / 100


def limit_of(result, program, recording):
    """Bytes; 0 without one. The error's, where it is none that verify infers: the program set it on the way."""
    if result.get("cap_mib"):
        return int(result["cap_mib"] * (1 << 20))
    command = [program, "verify", str(recording), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    inferred = json.loads(done.stdout)["limit_bytes"] if done.stdout else None
    told = told_limit(result)
    if told and not (inferred and inferred["low"] <= told[0] + told[1] and told[0] - told[1] <= inferred["high"]):
        return int(told[0])
    return inferred["low"] if inferred else 0


def drive(release, program, recording, result):
    out = release.folder / "recording.json"
    arguments = [str(out), "--recording", str(recording), "--total", str(result["total"])]
    limit = limit_of(result, program, recording)
    if limit:
        arguments += ["--limit", str(limit)]
    done = release.run("drive_recording.py", result.get("conf", ""), *arguments)
    if done.returncode != 0:
        return {"skipped": "torch stopped: " + (done.stderr.strip().splitlines() or [""])[-1]}
    return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="recordings whose path contains this")
    arguments = parser.parse_args()
    release = oracle.Release(RELEASE, arguments.folder.resolve())
    counts = {"same": 0, "different": 0, "skipped": 0}
    for recording in sorted(arguments.data.rglob("*snapshot.pickle.zst")):
        name = str(recording.relative_to(arguments.data)).removesuffix(".pickle.zst")
        described = recording.parent / "result.json"
        if arguments.only not in name or not described.exists():
            continue
        row = drive(release, arguments.program, recording, json.loads(described.read_text()))
        if row.get("skipped"):
            counts["skipped"] += 1
            print(f"{name:50} skipped: {row['skipped']}", flush=True)
            continue
        same = all(row[key]["equal"] == row[key]["recorded"] == row[key]["made"] for key in ("allocations", "driver"))
        counts["same" if same else "different"] += 1
        print(f"{name:50} {row['allocations']['equal']:>7}/{row['allocations']['recorded']:<7} "
              f"{row['driver']['equal']:>5}/{row['driver']['recorded']:<5} "
              f"{'same' if same else 'DIFFERS ' + json.dumps(row)}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
