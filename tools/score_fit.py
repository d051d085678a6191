#!/usr/bin/env python3
"""Score `oomscope fit` against what was measured on a card.

usage: score_fit.py --program PROGRAM [--data DIR] [--extra DIR] [--parts sweep,largest,caps] [--pairs] [--verbose]

DIR is the folder of recordings (default: $OOMSCOPE_DATA/h200, else ../shared/data/h200). Exit 1 where a threshold is
missed, 0 without data, loudly.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

MIB = 1 << 20


def fit(program, paths, *options):
    command = [program, "fit", *map(str, paths), "--json", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def snapshot(folder):
    return folder / "snapshot.pickle.zst"


def by_axis(folder):
    """{"b": {1: folder, ...}, "s": {...}} of a workload's folder in scale/ or sweep/."""
    axes = {}
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = re.fullmatch(r"([bs])(\d+)(_expand)?", entry.name)
        if match:
            axes.setdefault(match[1] + (match[3] or ""), {})[int(match[2])] = entry
    return axes


def measured_reserved(folder):
    result = json.loads((folder / "result.json").read_text())
    return result["stats"]["reserved_bytes.all.peak"]


def choices(values, pairs):
    """Which recordings to scale from: all of them, and with --pairs every two as well."""
    chosen = [tuple(sorted(values))]
    if pairs and len(values) > 2:
        chosen += list(itertools.combinations(sorted(values), 2))
    return chosen


class Score:
    def __init__(self, verbose):
        self.verbose = verbose
        self.failures = []

    def check(self, name, holds):
        print(f"{'ok  ' if holds else 'MISS'} {name}")
        if not holds:
            self.failures.append(name)

    def line(self, text):
        if self.verbose:
            print("    " + text)


def predict(program, folders, values, at, conf=None):
    options = ["--values", ",".join(map(str, values)), "--at", at]
    if conf is not None:
        options += ["--conf", conf]
    answer = fit(program, [folders[v] for v in values], *options)
    return next(p for p in answer["points"] if p["value"] == at)


def score_sweep(program, data, pairs, score):
    errors = []
    for workload in sorted((data / "sweep").iterdir()):
        recorded = by_axis(data / "scale" / workload.name)
        for axis, measured in by_axis(workload).items():
            small = {v: snapshot(f) for v, f in recorded.get(axis[0], {}).items()}
            if len(small) < 2:
                continue
            conf = "expandable_segments:True" if axis.endswith("_expand") else None
            for chosen in choices(small, pairs):
                for value in sorted(v for v in measured if v > max(chosen)):
                    point = predict(program, small, chosen, value, conf)
                    truth = measured_reserved(measured[value])
                    error = point["peak_reserved"] / truth - 1
                    errors.append(abs(error))
                    score.line(f"{workload.name} {axis}{value} from {chosen}: {point['peak_reserved'] // MIB} MiB, "
                               f"measured {truth // MIB} MiB, {100 * error:+.2f} %")
    print(f"sweep: {len(errors)} predictions, median {100 * statistics.median(errors):.3f} %, "
          f"worst {100 * max(errors):.2f} %")
    score.check("peak reserved within 0.2 % in the median", statistics.median(errors) <= 0.002)
    score.check("peak reserved within 4 % at worst", max(errors) <= 0.04)


def score_largest(program, data, pairs, score):
    measured = json.loads((data / "largest.json").read_text())
    equal = above = total = 0
    for name, truth in sorted(measured.items()):
        workload, cap, conf = name.split("/", 2)
        conf = "" if conf == "default" else conf
        small = {v: snapshot(f) for v, f in by_axis(data / "scale" / workload)["b"].items()}
        for chosen in choices(small, pairs):
            answer = fit(program, [small[v] for v in chosen], "--values", ",".join(map(str, chosen)), "--cap",
                         f"{cap}MiB", "--conf", conf)
            got = answer["largest"] or 0
            total += 1
            equal += got == truth["largest"]
            above += got > truth["largest"]
            score.line(f"{name} from {chosen}: {got}, measured {truth['largest']}")
    print(f"largest: {equal} of {total} equal, {above} above")
    score.check("largest equals in seven of eight", 8 * equal >= 7 * total)
    score.check("largest is never above", above == 0)


def score_caps(program, data, score):
    measured = json.loads((data / "caps.json").read_text())
    confs = {"default": "", "expand": "expandable_segments:True", "split128": "max_split_size_mb:128",
             "gc6": "garbage_collection_threshold:0.6"}
    below = unsure_far = sure = sure_of = 0
    for name, truth in sorted(measured.items()):
        workload, conf = name.split("/")
        path = snapshot(data / workload / "default")
        for percent in range(90, 111):
            cap = int(truth["fits_at_mib"] * percent / 100 * MIB)
            answer = fit(program, [path], "--cap", cap, "--conf", confs[conf])
            verdict = answer["points"][0]["fits"]
            below += verdict == "yes" and cap <= truth["fails_at_mib"] * MIB
            unsure_far += verdict == "unknown" and abs(percent - 100) > 3
            if percent >= 103:
                sure_of += 1
                sure += verdict == "yes"
            if verdict != ("yes" if percent >= 100 else "no"):
                score.line(f"{name} at {percent} %: {verdict}")
    print(f"caps: fits below {below}, unknown beyond 3 % {unsure_far}, fits from 1.03 on {sure} of {sure_of}")
    score.check("\"fits\" never below the smallest cap", below == 0)
    score.check("\"unknown\" only within 3 %", unsure_far == 0)
    score.check("\"fits\" in 95 % of cases from 1.03 on", sure >= 0.95 * sure_of)


def score_extra(program, folder, score):
    """NAME-bB-sS.pickle.zst with NAME-bB-sS.json (memory_stats): every two or three small ones against the larger."""
    runs = {}
    for path in sorted(folder.glob("*.json")):
        match = re.fullmatch(r"(.*)-b(\d+)-s(\d+)", path.stem)
        if match:
            runs.setdefault(match[1], {})[(int(match[2]), int(match[3]))] = path
    errors = {}
    for name, entries in runs.items():
        for axis in (0, 1):
            groups = {}
            for key in entries:
                groups.setdefault(key[1 - axis], []).append(key)
            for keys in groups.values():
                keys.sort(key=lambda key: key[axis])
                for count, start in ((2, 0), (3, 0), (2, 1)):
                    chosen = keys[start:start + count]
                    if len(chosen) < count:
                        continue
                    values = ",".join(str(key[axis]) for key in chosen)
                    paths = [entries[key].with_suffix("").with_suffix(".pickle.zst") for key in chosen]
                    for key in keys[start + count:]:
                        answer = fit(program, paths, "--values", values, "--at", key[axis])
                        got = next(p for p in answer["points"] if p["value"] == key[axis])["peak_reserved"]
                        truth = json.loads(entries[key].read_text())["reserved_bytes.all.peak"]
                        error = got / truth - 1
                        errors.setdefault(name, []).append(error)
                        score.line(f"{name} {'bs'[axis]}{key[axis]} from {values}: {got // MIB} MiB, measured "
                                   f"{truth // MIB} MiB, {100 * error:+.2f} %")
    for name, list_ in errors.items():
        size = [abs(e) for e in list_]
        print(f"extra {name}: median {100 * statistics.median(size):.2f} %, worst {100 * max(size):.2f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--extra", type=pathlib.Path, help="more recordings, see score_extra")
    parser.add_argument("--parts", default="sweep,largest,caps")
    parser.add_argument("--pairs", action="store_true", help="also from every two of three recordings")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    root = pathlib.Path(os.environ.get("OOMSCOPE_DATA", pathlib.Path(__file__).parents[2] / "shared/data"))
    data = arguments.data or root / "h200"
    if not data.is_dir():
        print(f"SKIPPED: no recordings in {data}; set OOMSCOPE_DATA")
        return 0
    score = Score(arguments.verbose)
    parts = arguments.parts.split(",")
    if "sweep" in parts:
        score_sweep(arguments.program, data, arguments.pairs, score)
    if "largest" in parts:
        score_largest(arguments.program, data, arguments.pairs, score)
    if "caps" in parts:
        score_caps(arguments.program, data, score)
    if arguments.extra:
        score_extra(arguments.program, arguments.extra, score)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
