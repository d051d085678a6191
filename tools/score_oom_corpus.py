#!/usr/bin/env python3
"""Runs the program on labelled failure reports and prints how often it is right.

    tools/score_oom_corpus.py --program build/release/bin/oomscope CORPUS.jsonl [--show] [--check]

A line of CORPUS is a report: `input` (the text), `truth` (kind, also_ok, basis), `numbers` in bytes, `confidence`, `fix`.
`kind` counts as right where it is truth.kind or one of also_ok. A number is right to half of the digit that was printed
last (two decimals of its unit), and only numbers of the label are asked for. A report that is not_memory counts as
recognised where kind says so, or where kind is one that the label allows and `also` says so. A confirmed fix (basis
thread) counts where one of the first three changes is a remedy that the words of the fix stand for. --show lists what
was wrong; --check exits 1 where a threshold is missed.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

# Words of a fix, and the remedies that they stand for. Fixes that name none of these are not counted.
FIX_WORDS = [
    (r"batch[ _]?(size)?s? ?\(?\d|smaller batch|batch_size|small batch|total below|batch size", {"smaller-batch"}),
    (r"smaller image|smaller input|smaller sequence|try a smaller input|crop", {"smaller-input"}),
    (r"CUDA_VISIBLE_DEVICES|net\.cuda\(1\)|one card with enough|another GPU", {"other-gpu", "free-other-processes"}),
    (r"over four GPUs|over several", {"model-parallel", "sharding", "other-gpu"}),
    (r"no_grad", {"no-grad", "inference-mode"}),
    (r"deleted them|detach", {"detach", "delete-references", "loss-item"}),
    (r"/dev/shm|shared-memory|memory-backed volume", {"larger-shm"}),
    (r"set_sharing_strategy|sharing strategy", {"sharing-strategy"}),
    (r"ulimit|RLIMIT_NOFILE", {"raise-ulimit"}),
    (r"max_map_count", {"raise-map-count"}),
    (r"loader workers|zero workers|fewer workers|num_workers", {"fewer-workers"}),
    (r"requested memory|memory request", {"raise-cgroup-limit"}),
    (r"larger machine", {"more-host-memory"}),
    (r"expandable_segments", {"allocator-setting"}),
    (r"empty_cache", {"release-cache"}),
    (r"smaller model|half the vocabulary", {"smaller-model"}),
    (r"quantised|shorter context|offload", {"quantised-loading", "smaller-kv-cache", "offload"}),
    (r"WATERMARK", {"mps-watermark"}),
    (r"pin_memory", {"no-pinning"}),
    (r"[Ii]nstalling torch|[Nn]ewer PyTorch|went back to|NVIDIA driver", {"match-versions"}),
    (r"valid index|ids inside the vocabulary", {"check-indices"}),
    (r"room on the disk", {"check-disk"}),
    (r"[Dd]ata set repaired|data path", {"check-data"}),
    (r"fused one|attention call", {"fused-attention"}),
    (r"optim\.AdamW", {"lighter-optimizer", "match-versions"}),
]


def explain(program, text):
    run = subprocess.run([program, "why", "-", "--json"], input=text.encode(), capture_output=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"{program} failed: {run.stderr.decode(errors='replace')}")
    return json.loads(run.stdout)


def half_last_digit(value):
    """Half of 0.01 of the largest unit that fits, which is how torch prints; bytes are exact."""
    for unit in (1 << 30, 1 << 20, 1 << 10):
        if abs(value) >= unit:
            return 0.005 * unit + 1
    return 0.5


def same(got, want):
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, sorted(got), sorted(want)))
    return got is not None and abs(got - want) <= max(half_last_digit(want), 1e-9 * abs(want))


def remedies_of(fix):
    found = set()
    for words, remedies in FIX_WORDS:
        if re.search(words, fix):
            found |= remedies
    return found


def percent(right, total):
    return f"{right}/{total} = {100 * right / total:.1f} %" if total else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/bin/oomscope")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    kinds = collections.defaultdict(lambda: [0, 0, 0])
    numbers, negatives, fixes = [0, 0], [0, 0], [0, 0, 0]
    false_alarms = 0
    for line in options.corpus.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        answer = explain(options.program, case["input"])
        truth, kind = case["truth"], answer["kind"]
        is_exact, is_right = kind == truth["kind"], kind in [truth["kind"], *truth["also_ok"]]
        for group in ((case["confidence"], truth["basis"]), ("all", "all")):
            kinds[group][0] += is_exact
            kinds[group][1] += is_right
            kinds[group][2] += 1
        if not is_right and options.show:
            print(f"kind    {case['id']}: {kind}, want {truth['kind']} or {truth['also_ok']} ({case['confidence']})")
        for name, want in case["numbers"].items():
            got = answer["numbers"].get(name)
            right = same(got, want)
            numbers[0] += right
            numbers[1] += 1
            if not right and options.show:
                print(f"number  {case['id']}: {name} {got}, want {want}")
        if truth["kind"] == "not_memory":
            negatives[0] += kind == "not_memory" or (is_right and "not_memory" in answer["also"])
            negatives[1] += 1
        elif kind == "not_memory" and not is_right:
            false_alarms += 1
        if case["fix"] and truth["basis"] == "thread":
            wanted = remedies_of(case["fix"])
            fixes[2] += not wanted
            if wanted:
                first = [change["id"] for finding in answer["findings"] for change in finding["changes"]][:3]
                fixes[0] += bool(wanted & set(first))
                fixes[1] += 1
                if not wanted & set(first) and options.show:
                    print(f"fix     {case['id']}: {first}, want {sorted(wanted)}: {case['fix']}")
    print(f"{'confidence':12}{'basis':10}{'exact':>20}{'right or also':>20}")
    for (confidence, basis), (exact, right, total) in sorted(kinds.items()):
        print(f"{confidence:12}{basis:10}{percent(exact, total):>20}{percent(right, total):>20}")
    sure = [sum(kinds[key][i] for key in kinds if key[0] in ("high", "medium")) for i in (1, 2)]
    print(f"high and medium            {percent(*sure)}")
    print(f"numbers                    {percent(*numbers)}")
    print(f"not_memory recognised      {percent(*negatives)}, taken for it by mistake: {false_alarms}")
    print(f"confirmed fix among three  {percent(*fixes[:2])} ({fixes[2]} fixes name no change)")
    held = (sure[0] >= 0.97 * sure[1] and kinds[("all", "all")][1] >= 0.9 * kinds[("all", "all")][2]
            and numbers[0] >= 0.97 * numbers[1] and negatives[0] == negatives[1] and fixes[0] >= 0.8 * fixes[1])
    return 1 if options.check and not held else 0


if __name__ == "__main__":
    sys.exit(main())
