#!/usr/bin/env python3
"""Measured workspaces of convolutions, as tools/measure_convolutions.py writes them -> the table that the program carries.

usage: tabulate_convolutions.py MEASURED.json.xz... [--keep TABLE.zst] --write src/plan/convolutions.txt.zst

A line a geometry (format, channels in and out, input, output, kernel, groups, dilation), then runs of batches that
asked for the same in each pass: forward, the input's gradient, the weight's. src/plan/conv_table.h says what the letters
mean. Geometries of the table to keep stay as they are.
"""
import argparse
import collections
import json
import lzma
import pathlib
import subprocess

EXTRA = 1500  # semaphores and alignment
LEAST = 4096
MOST_PARTS = 300
BYTES = {"f": 4, "C": 4, "b": 2, "c": 2}


def with_extra(kernel, extra):
    return f"{kernel}+{extra}" if extra else kernel


def candidates(scratch, x, y, w, batch):
    """Every way to read so many bytes, the likelier first: a letter with a number, and bytes besides."""
    if scratch < LEAST:
        return ["0"]
    found = []
    for letter, copies in (("a", x + y), ("x", x), ("y", y)):
        rest = scratch - copies
        if rest >= 0 and rest % w < EXTRA and rest // w <= MOST_PARTS:
            found.append(with_extra(f"{letter}{rest // w}", rest % w))
    extra = scratch - round(2.25 * (x + y)) - 4 * w
    if 0 <= extra < LEAST:
        found.append(with_extra("i", extra))
    if scratch % w < EXTRA:
        parts = scratch // w
        if parts % batch == 0:
            found.append(with_extra(f"n{parts // batch}", scratch % w))
        if parts <= MOST_PARTS:
            found.append(with_extra(f"w{parts}", scratch % w))
    share = scratch / (x + y)
    return found + [f"q{share:.11g}"]


def read(paths):
    """{geometry: {batch: [bytes of three passes]}}"""
    table = collections.defaultdict(dict)
    for path in paths:
        opened = lzma.open(path, "rt") if path.suffix == ".xz" else open(path)
        for line in opened:
            f, n, c, k, h, w, rh, rw, _, _, _, _, d, g, p, q, *scratch = json.loads(line)
            table[f, c, k, h, w, p, q, rh, rw, g, d].setdefault(n, scratch)
    return table


def kernels(geometry, batches):
    """By batch, the reading of each pass that most batches of the geometry share."""
    f, c, k, h, w, p, q, rh, rw, g, _ = geometry
    e = BYTES[f]
    chosen = {n: [] for n in batches}
    for index in range(3):
        options = {n: candidates(scratch[index], e * n * c * h * w, e * n * k * p * q, e * k * c // g * rh * rw, n)
                   for n, scratch in batches.items()}
        votes = collections.Counter(o for list_ in options.values() for o in list_)
        for n, list_ in options.items():
            chosen[n].append(max(list_, key=lambda o: (votes[o], -list_.index(o))))
    return chosen


def line_of(geometry, batches):
    runs = []
    for n, triple in sorted(kernels(geometry, batches).items()):
        text = ",".join(triple)
        if runs and runs[-1][2] == text:
            runs[-1][1] = n
        else:
            runs.append([n, n, text])
    return " ".join(map(str, geometry)) + " " + " ".join(f"{a}-{b}:{text}" for a, b, text in runs)


def kept_lines(path):
    """{geometry as text: line}"""
    text = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True, text=True).stdout
    return {" ".join(line.split(" ", 11)[:11]): line for line in text.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", nargs="+", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    table = read(arguments.measured)
    kept = kept_lines(arguments.keep) if arguments.keep else {}
    fresh = [line_of(geometry, batches) for geometry, batches in table.items()
             if " ".join(map(str, geometry)) not in kept]
    lines = sorted([*kept.values(), *fresh])
    text = ("\n".join(lines) + "\n").encode()
    size = f"--stream-size={len(text)}"  # the reader asks for it
    subprocess.run(["zstd", "-19", "-q", "-f", size, "-o", arguments.write], input=text, check=True)
    print(f"{len(lines)} geometries, {len(fresh)} of them new, {arguments.write.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
