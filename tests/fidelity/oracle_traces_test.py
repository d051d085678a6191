#!/usr/bin/env python3
"""Short runs of eleven PyTorch releases, each replayed by the rules of its release without a difference.

    oracle_traces_test.py --program build/release/bin/oomscope

They are in tests/data/oracle, made by `tools/oracle/oracle.py --fixtures`: random requests through each release's own
allocator, on a card that is only numbers. The requests themselves go through the engine (replay_requests, beside the
program); every trace is compared with them (compare_trace.py); `oomscope verify` reads the recordings, where a
recording tells enough. Beside each stands what it was made with.
"""
import argparse
import gzip
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "tests" / "data" / "oracle"
sys.path.insert(0, str(REPOSITORY / "tools" / "oracle"))
from compare_trace import trace_difference, unread  # noqa: E402


def verify(program, described, made, device):
    """The answer of `oomscope verify`, or what it said instead."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as stats:
        json.dump(made["stats"][device], stats)
        stats.flush()
        command = [program, "verify", str(described.with_suffix(".pickle.zst")), "--rules", made["rules"], "--conf",
                   made["conf"], "--stats", stats.name, "--device", str(device), "--json"]
        if made["cap_bytes"]:
            command += ["--cap", str(made["cap_bytes"])]
        done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr or f"exit code {done.returncode}"}


def requests_of(described):
    return gzip.decompress(described.with_suffix(".requests.gz").read_bytes()).decode()


def engine_problem(program, described, made):
    """What differs when the engine gets the requests themselves; "" if nothing does."""
    recording = described.with_suffix(".pickle.zst")
    done = subprocess.run([pathlib.Path(program).parent / "replay_requests", made["rules"], recording],
                          input=requests_of(described), capture_output=True, text=True)
    result = json.loads(done.stdout or "{}")
    if not result.get("mallocs") or not result["stats"]:
        return "nothing was compared: " + done.stderr
    return "" if done.returncode == 0 else f"the engine differs: {done.stdout}"


def trace_problem(described, made):
    """What differs between the recorded history and the requests, or would not be noticed; "" if nothing."""
    unpacked = subprocess.run(["zstd", "-dcq", described.with_suffix(".pickle.zst")], check=True, capture_output=True)
    snapshot, log = pickle.loads(unpacked.stdout), requests_of(described).splitlines()
    for device in range(len(made["stats"])):
        problem = trace_difference(snapshot, log, device) or unnoticed_alteration(snapshot, log, device)
        if problem:
            return problem
    return ""


def unnoticed_alteration(snapshot, log, device):
    """One event of each kind is moved by 512 bytes: the comparison must say so. "" if it does."""
    by_action = {event["action"]: event for event in snapshot["device_traces"][device] if "addr" in event}
    for action, event in by_action.items():
        event["addr"] += 512
        noticed = trace_difference(snapshot, log, device)
        event["addr"] -= 512
        if not noticed and action != "oom":  # an oom entry has no address
            return f"{action} at another address is not noticed"
    return ""


def reading_problem(program, described, made):
    """What differs when nothing but the recording is known; "" if nothing does."""
    for device in range(len(made["stats"])):
        result = verify(program, described, made, device)
        problem = unread(result)
        if problem or result["stats_total"] == 0:
            return problem or "no statistic was compared"
    return ""


def problem_of(program, described):
    made = json.loads(described.read_text())
    return (engine_problem(program, described, made) or trace_problem(described, made) or
            (reading_problem(program, described, made) if made["can_be_read"] else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    recordings = sorted(FOLDER.glob("*.json"))
    failed = 0
    for described in recordings:
        problem = problem_of(arguments.program, described)
        if problem:
            failed += 1
            print(f"{described.stem}: {problem}")
    print(f"{len(recordings) - failed} of {len(recordings)} recordings replayed without a difference")
    sys.exit(1 if failed or not recordings else 0)


if __name__ == "__main__":
    main()
