#!/usr/bin/env python3
"""Checks the oracle itself: torch 2.11 on fake_cuda.cc against recordings of torch 2.11 on a real card.

    tools/oracle/recordings.py --folder FOLDER --data DATA [--only TEXT]

FOLDER as for oracle.py, DATA the folder of the recordings (one folder a run with result.json and snapshot.pickle.zst).
Every request of a recording goes through torch again; the card places segments where the real one did. Prints one row a
recording; exit code 1 if an allocation or a driver event is not where the real card had it.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import oracle  # noqa: E402

RELEASE = "2.11.0"


def drive(release, folder, recording, result):
    out = folder / "recording.json"
    environment = dict(os.environ, LD_LIBRARY_PATH=str(release.libraries),
                       PYTHONPATH=f"{release.torch}:{oracle.python_packages(folder)}")
    environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    if result["conf"]:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = result["conf"]
    command = [sys.executable, str(HERE / "drive_recording.py"), str(out), "--recording", str(recording), "--total",
               str(result["total"])]
    if result.get("cap_mib"):
        command += ["--limit-mib", str(result["cap_mib"])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return {"skipped": "torch stopped: " + (done.stderr.strip().splitlines() or [""])[-1]}
    return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="recordings whose path contains this")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    release = oracle.Release(RELEASE, folder)
    counts = {"same": 0, "different": 0, "skipped": 0}
    for recording in sorted(arguments.data.rglob("snapshot.pickle.zst")):
        name = str(recording.parent.relative_to(arguments.data))
        described = recording.parent / "result.json"
        if arguments.only not in name or not described.exists():
            continue
        result = json.loads(described.read_text())
        if "total" not in result:
            continue
        row = drive(release, folder, recording, result)
        if row.get("skipped"):
            counts["skipped"] += 1
            print(f"{name:40} skipped: {row['skipped']}", flush=True)
            continue
        same = all(row[key]["equal"] == row[key]["recorded"] == row[key]["made"] for key in ("allocations", "driver"))
        counts["same" if same else "different"] += 1
        print(f"{name:40} {row['allocations']['equal']:>7}/{row['allocations']['recorded']:<7} "
              f"{row['driver']['equal']:>5}/{row['driver']['recorded']:<5} "
              f"{'same' if same else 'DIFFERS ' + json.dumps(row)}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
