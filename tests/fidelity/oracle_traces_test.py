#!/usr/bin/env python3
"""Short runs of eleven PyTorch releases, each replayed by the rules of its release without a difference.

    oracle_traces_test.py --program build/release/bin/oomscope

They are in tests/data/oracle, made by `tools/oracle/oracle.py --fixtures`: random requests through each release's own
allocator, on a card that is only numbers. The requests themselves go through the engine (replay_requests, beside the
program); `oomscope verify` reads the recordings, where a recording tells enough. Beside each stands what it was made
with.
"""
import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "oracle"
# Counts waits that no trace shows: docs/fidelity.md.
NOT_IN_A_TRACE = {"num_sync_all_streams"}


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
    result = json.loads(done.stdout or "{}")
    return result if "first_difference" in result else {"first_difference": done.stdout + done.stderr}


def engine_problem(program, described, made):
    """What differs when the engine gets the requests themselves; "" if nothing does."""
    recording = described.with_suffix(".pickle.zst")
    requests = gzip.decompress(described.with_suffix(".requests.gz").read_bytes())
    done = subprocess.run([pathlib.Path(program).parent / "replay_requests", made["rules"], recording],
                          input=requests, capture_output=True)
    result = json.loads(done.stdout or "{}")
    if not result.get("mallocs") or not result["stats"]:
        return "nothing was compared: " + done.stderr.decode()
    return "" if done.returncode == 0 else f"the engine differs: {done.stdout.decode()}"


def reading_problem(program, described, made):
    """What differs when nothing but the recording is known; "" if nothing does."""
    for device in range(len(made["stats"])):
        result = verify(program, described, made, device)
        if result["first_difference"]:
            return str(result["first_difference"])
        if result["alloc_total"] == 0 or result["stats_total"] == 0:
            return "nothing was compared"
        if not result["final_state_equal"]:
            return "the final state differs"
        differing = set(result["stats_differing"]) - NOT_IN_A_TRACE
        if differing:
            return f"statistics differ: {', '.join(sorted(differing))}"
    return ""


def problem_of(program, described):
    made = json.loads(described.read_text())
    return engine_problem(program, described, made) or (
        reading_problem(program, described, made) if made["can_be_read"] else "")


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
