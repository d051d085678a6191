#!/usr/bin/env python3
"""How often does `oomscope why` name the cause? Scores it on recordings whose cause is known.

    tools/score_causes.py --program BUILD/bin/oomscope [--data DIR] [--staged DIR] [NAME...]

DIR holds causes.json ({recording: {cause, instant}}) and the recordings (default: $OOMSCOPE_DATA/h200). All other
recordings that completed are healthy: "none" is expected. --staged: a folder of tests/gpu/record_models.py, whose
labels.json says the causes, or one of tests/gpu/record_causes.py, whose file names begin with them. Of recordings that
failed it counts too in how many the first finding's first change that can be replayed completes under the same limit.
Prints a line for each miss (with --all for each) and the totals; exit code 1 below 95 %.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

# Completed recordings whose workload has a fault by design, and what it is.
FAULTY = {"gpt_leak": {"graph-kept"}}


def snapshot_of(folder):
    for name in ("oom_snapshot.pickle.zst", "snapshot.pickle.zst"):
        if (folder / name).exists():
            return folder / name
    return None


def first_finding(program, snapshot):
    command = [program, "why", str(snapshot), "--json", "--no-sweep"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    try:
        findings = json.loads(done.stdout).get("findings", [])
    except json.JSONDecodeError:
        return {"id": "[no answer] " + done.stderr[:80], "instant": {}}, []
    if not findings:
        return {"id": "[no finding] " + done.stdout[:200], "instant": {}}, []
    return findings[0], [f["id"] for f in findings[1:]]


def first_tested(finding):
    """The first change that was replayed under the limit, and whether it completes; None: none could be replayed."""
    for change in finding.get("changes", []):
        completed = (change["predicted"] or {}).get("completed")
        if completed is not None:
            return change["id"], completed
    return None


def instant_right(label, text):
    """Does the text say what one of the label's alternatives says? "any" and "-" ask for nothing."""
    said = set(re.findall(r"[a-z]+", (text or "").lower()))
    wanted = [set(re.findall(r"[a-z]+", each.lower())) - {"the", "of"} for each in label.split(" or ")]
    return label in ("any", "-", "") or any(words <= said for words in wanted)


def labelled(data):
    labels = json.loads((data / "causes.json").read_text())
    return [(name, data / name, {label["cause"]}, label["instant"]) for name, label in labels.items()]


def healthy(data, labels):
    cases = []
    for result in sorted(data.rglob("result.json")):
        folder = result.parent
        name = str(folder.relative_to(data))
        if name in labels or not (folder / "snapshot.pickle.zst").exists():
            continue
        if not json.loads(result.read_text()).get("ok", True) or name.startswith(("oom/", "capfail/", "gallery/")):
            continue
        workload = name.split("/")[0]
        cases.append((name, folder / "snapshot.pickle.zst", FAULTY.get(workload, {"none"}), "-"))
    return cases


def staged(folder):
    if (folder / "labels.json").exists():
        labels = json.loads((folder / "labels.json").read_text())
        found = [(name, next(folder.glob(name + ".pickle*"), None), label) for name, label in labels.items()]
        return [(name, path, {label["cause"]}, label["instant"]) for name, path, label in found if path]
    table = pathlib.Path(__file__).parent.parent / "src/analysis/rules/table.cc"
    ids = re.findall(r'\.id = "([a-z-]+)', table.read_text())
    cases = []
    for path in sorted(folder.glob("*.pickle*")):
        stem = path.name.split(".")[0].replace("_", "-")
        cases.append((path.name, path, {max((i for i in ids if stem.startswith(i)), key=len, default="none")}, ""))
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("OOMSCOPE_DATA", "../shared/data")) / "h200")
    parser.add_argument("--staged", type=pathlib.Path)
    parser.add_argument("--labels-only", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    groups = {}
    if arguments.staged:
        groups["staged"] = staged(arguments.staged)
    else:
        groups["labelled"] = labelled(arguments.data)
        if not arguments.labels_only:
            groups["healthy"] = healthy(arguments.data, {name for name, *_ in groups["labelled"]})
    good = True
    for group, cases in groups.items():
        if arguments.names:
            cases = [case for case in cases if any(name in case[0] for name in arguments.names)]
        right = 0
        failed, tested, completed, placed = 0, 0, 0, 0
        for name, path, expected, instant in cases:
            snapshot = path if path.is_file() else snapshot_of(path)
            if snapshot is None:
                print(f"  {name}: no snapshot")
                continue
            finding, others = first_finding(arguments.program, snapshot)
            hit = finding["id"] in expected
            right += hit
            placed += hit and instant_right(instant, finding["instant"].get("text"))
            trial = first_tested(finding)
            if finding["instant"].get("failed") or finding.get("failed_in"):
                failed += 1
                tested += trial is not None
                completed += trial is not None and trial[1]
                if trial is None or not trial[1] or arguments.all:
                    ids = ", ".join(change["id"] for change in finding["changes"])
                    print(f"  {name} ({finding['id']}): "
                          f"{'no change of ' + ids + ' replayed' if trial is None else trial}")
            if not hit or arguments.all or group == "labelled":
                print(f"{'  ' if hit else '! '}{name}: {finding['id']} ({finding['instant'].get('text')}); expected "
                      f"{'/'.join(sorted(expected))} ({instant}); also {', '.join(others)}")
        print(f"{group}: {right} of {len(cases)}, of them {placed} at the right instant")
        if failed:
            print(f"{group}: of {failed} that failed, {tested} have a change that was replayed; the first completes in "
                  f"{completed}")
        good = good and right >= 0.95 * len(cases)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
