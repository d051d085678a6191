#!/usr/bin/env python3
"""Compares the engine with PyTorch's own allocator, release by release, on random streams of requests.

    tools/oracle/oracle.py --program build/release/bin/oomscope --folder FOLDER [--release 2.11.0 ...]
                           [--operations N] [--only NAME] [--seed N] [--keep] [--json FILE] [--fixtures FOLDER]

FOLDER keeps what is downloaded and built: for each release the unpacked wheel (torch-VERSION, fetched with pip), the
libraries that build.py makes (lib-VERSION) and the recordings (runs/). Each case of CASES is driven through torch by
drive.py under fake_cuda.cc, then replayed by `oomscope verify --rules` of that release: every address, driver call,
final block and statistic is compared, and the calls that the allocator made of the driver with those that its trace
tells of. Prints one row a release and case; exit code 1 if anything differs. --fixtures writes the recordings that
tests/fidelity/oracle_traces_test.py reads: a few short ones of each release, with what they were made with.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import pickle
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import build  # noqa: E402

RELEASES = ("2.1.2", "2.4.1", "2.6.0", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
NEEDED_BY_TORCH = ("filelock", "typing-extensions", "setuptools<82", "sympy", "networkx", "jinja2", "fsspec", "numpy<2")
GIB = 1 << 30
# num_sync_all_streams counts waits that no trace shows: docs/fidelity.md.
NOT_IN_A_TRACE = {"num_sync_all_streams"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to run the allocator. `since`: the first release that has what it needs."""
    name: str
    conf: str = ""
    use: str = ""
    placement: str = "random"
    capacity: int = 80 * GIB
    fraction: float = 0
    since: tuple = (2, 1)


SMALL = 3 * GIB  # about half more than what is live: refusals, retries, releases
CASES = (
    Case("default, segments upwards", placement="lowest"),
    Case("default, segments downwards", placement="highest"),
    Case("default, segments anywhere"),
    Case("empty_cache", use="empty_cache"),
    Case("streams", use="streams"),
    Case("streams, empty_cache", use="streams,empty_cache"),
    Case("private pools", use="pools"),
    Case("private pools, streams, empty_cache", use="pools,streams,empty_cache"),
    Case("card full", capacity=SMALL),
    Case("card full, streams", use="streams", capacity=SMALL),
    Case("card full, private pools", use="pools", capacity=SMALL),
    Case("limit", fraction=SMALL / (80 * GIB)),
    Case("limit, streams, empty_cache", use="streams,empty_cache", fraction=SMALL / (80 * GIB)),
    Case("max_split_size", conf="max_split_size_mb:32"),
    Case("max_split_size, card full", conf="max_split_size_mb:64", capacity=SMALL),
    Case("max_split_size, limit, streams", conf="max_split_size_mb:128", use="streams", fraction=SMALL / (80 * GIB)),
    Case("roundup", conf="roundup_power2_divisions:4"),
    Case("roundup to 1", conf="roundup_power2_divisions:1"),
    Case("roundup list", conf="roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"),
    Case("collection", conf="garbage_collection_threshold:0.8", fraction=SMALL / (80 * GIB)),
    Case("collection without a limit", conf="garbage_collection_threshold:0.02"),
    Case("collection, streams", conf="garbage_collection_threshold:0.6", use="streams", fraction=SMALL / (80 * GIB)),
    Case("collection, max_split_size", conf="garbage_collection_threshold:0.7,max_split_size_mb:64",
         fraction=SMALL / (80 * GIB)),
    Case("expandable", conf="expandable_segments:True"),
    Case("expandable, streams, empty_cache", conf="expandable_segments:True", use="streams,empty_cache"),
    Case("expandable, private pools", conf="expandable_segments:True", use="pools"),
    Case("expandable, card full", conf="expandable_segments:True", use="streams", capacity=SMALL),
    Case("expandable, limit", conf="expandable_segments:True", fraction=SMALL / (80 * GIB)),
    Case("non-split rounding", conf="max_split_size_mb:32,max_non_split_rounding_mb:64", since=(2, 9)),
    Case("large segments", conf="large_segment_size_mb:64", since=(2, 10)),
    Case("large segments, expandable", conf="expandable_segments:True,large_segment_size_mb:40", since=(2, 10)),
)

FIXTURES = {"pools": "private pools, streams, empty_cache", "full": "card full, streams",
            "pools-full": "card full, private pools",
            "split": "max_split_size, limit, streams", "collection": "collection, streams",
            "expandable": "expandable, card full", "roundup": "roundup to 1"}
FIXTURE_OPERATIONS = 400


def version_of(release):
    return tuple(int(part) for part in release.split(".")[:2])


def fetch(release, folder):
    """The unpacked wheel of a release, downloaded if it is not there."""
    target = folder / f"torch-{release}"
    if (target / "torch").is_dir():
        return target
    wheels = folder / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), f"torch=={release}"],
                   check=True)
    wheel = next(wheels.glob(f"torch-{release}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    wheel.unlink()
    return target


def python_packages(folder):
    """What torch imports, beside it."""
    target = folder / "packages"
    if not target.is_dir():
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(target), *NEEDED_BY_TORCH],
                       check=True)
    return target


class Release:
    def __init__(self, release, folder):
        self.name, self.folder = release, folder
        self.torch = fetch(release, folder)
        self.libraries = folder / f"lib-{release}"
        if not (self.libraries / "libcuda.so.1").exists():
            build.build(self.torch / "torch", self.libraries)

    def drive(self, case, out, seed, operations):
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=case.conf, LD_LIBRARY_PATH=str(self.libraries),
                           PYTHONPATH=f"{self.torch}:{python_packages(self.folder)}")
        if not case.conf:
            del environment["PYTORCH_CUDA_ALLOC_CONF"]
        command = [sys.executable, str(HERE / "drive.py"), str(out), "--seed", str(seed), "--operations",
                   str(operations), "--capacity", str(case.capacity), "--placement", case.placement, "--use", case.use]
        if case.fraction:
            command += ["--fraction", repr(case.fraction)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)


def rules_of(release, program):
    """The rule set whose releases include this one, as `verify` names it."""
    listed = subprocess.run([program, "verify", "x", "--rules", "?", "--lang", "en"], capture_output=True, text=True).stderr
    names = [name.strip(" .\n") for name in listed.split("They are:")[-1].replace("\n", " ").split(",")]
    versions = {tuple(int(p) for p in name.split("-")[1].split(".")): name for name in names if name.count("-") == 1}
    known = [version for version in sorted(versions) if version <= version_of(release)]
    return versions[known[-1] if known else min(versions)]


def driver_differences(recording, calls):
    """Driver calls that the trace does not tell of in order, or the other way round."""
    kinds = {"segment_alloc": "allocate", "segment_free": "release", "segment_map": "map", "segment_unmap": "unmap"}
    traced = [(kinds[event["action"]], event["addr"], event["size"]) for event in recording["device_traces"][0]
              if event["action"] in kinds]
    made = [tuple(call) for call in calls if call[0] in kinds.values()]
    return sum(a != b for a, b in zip(merged(traced), merged(made))) + abs(len(merged(traced)) - len(merged(made)))


def merged(calls):
    """A range is mapped page by page, and recorded as one."""
    result = []
    for kind, address, size in calls:
        if result and kind in ("map", "unmap") and result[-1][0] == kind and result[-1][1] + result[-1][2] == address:
            result[-1] = (kind, result[-1][1], result[-1][2] + size)
        else:
            result.append((kind, address, size))
    return result


def cap_of(case):
    """The limit in bytes, None without one."""
    return int(case.fraction * case.capacity) if case.fraction else None


def verify(program, rules, case, out):
    stats = out.with_suffix(".stats.json")
    command = [program, "verify", str(out), "--rules", rules, "--conf", case.conf, "--stats", str(stats), "--json"]
    if case.fraction:
        command += ["--cap", str(cap_of(case))]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        return {"error": done.stderr.strip()}
    return json.loads(done.stdout)


def compare(program, release, case, seed, operations, folder, rules):
    """One row: what was compared, and what differed."""
    out = folder / "runs" / f"{release.name}-{CASES.index(case)}-{seed}.pickle"
    out.parent.mkdir(exist_ok=True)
    driven = release.drive(case, out, seed, operations)
    row = {"release": release.name, "rules": rules, "case": case.name, "seed": seed, "operations": operations}
    if driven.returncode != 0:
        return dict(row, failed=driven.stderr.strip().splitlines()[-1:] or ["ended"], same=False)
    result = verify(program, rules, case, out)
    if "error" in result:
        return dict(row, failed=[result["error"]], same=False)
    with open(out, "rb") as file:
        calls = json.loads(out.with_suffix(".calls.json").read_text())
        row["driver_calls_untold"] = driver_differences(pickle.load(file), calls)
    for key in ("events", "alloc_total", "alloc_exact", "driver_events_total", "driver_events_exact",
                "final_state_equal", "stats_total", "stats_equal", "first_difference"):
        row[key] = result[key]
    stats_short = result["stats_total"] - result["stats_equal"]
    row["same"] = (result["alloc_total"] == result["alloc_exact"] and result["final_state_equal"] is True and
                   result["driver_events_total"] == result["driver_events_exact"] and
                   stats_short <= len(NOT_IN_A_TRACE))
    row["recording"] = str(out)
    return row


def write_fixtures(release, rules, folder, target):
    """NAME.pickle.zst and NAME.json: the recording, and what it was made with."""
    target.mkdir(parents=True, exist_ok=True)
    for short, name in FIXTURES.items():
        case = next(case for case in CASES if case.name == name)
        out = folder / "runs" / f"fixture-{release.name}-{short}.pickle"
        out.parent.mkdir(exist_ok=True)
        driven = release.drive(case, out, 1, FIXTURE_OPERATIONS)
        if driven.returncode != 0:
            print(f"{release.name} {short}: torch stopped: {driven.stderr.strip().splitlines()[-1]}")
            continue
        subprocess.run(["zstd", "-19", "-q", "-f", str(out), "-o", str(target / f"{release.name}-{short}.pickle.zst")],
                       check=True)
        made = {"torch": release.name, "case": case.name, "rules": rules, "conf": case.conf, "cap_bytes": cap_of(case),
                "command": f"drive.py --seed 1 --operations {FIXTURE_OPERATIONS} --capacity {case.capacity} "
                           f"--placement {case.placement} --use {case.use}",
                "stats": json.loads(out.with_suffix(".stats.json").read_text())}
        (target / f"{release.name}-{short}.json").write_text(json.dumps(made) + "\n")


def text_of(row):
    if "failed" in row:
        return f"{row['release']:8} {row['case']:38} torch stopped: {row['failed'][0]}"
    stats = f"{row['stats_equal']}/{row['stats_total']}"
    verdict = "same" if row["same"] else f"DIFFERS {row['first_difference']}"
    return (f"{row['release']:8} {row['case']:38} {row['alloc_exact']:>7}/{row['alloc_total']:<7} "
            f"{row['driver_events_exact']:>5}/{row['driver_events_total']:<5} {stats:>8} "
            f"{row['driver_calls_untold']:>3}  {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--release", action="append", help="may be repeated; default: all")
    parser.add_argument("--operations", type=int, default=40000, help="of each case")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the recordings that agree as well")
    parser.add_argument("--json", type=pathlib.Path, help="the rows, one a line")
    parser.add_argument("--fixtures", type=pathlib.Path, help="write short recordings here, and compare nothing")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    arguments.folder = arguments.folder.resolve()
    all_same = True
    for name in arguments.release or RELEASES:
        release = Release(name, arguments.folder)
        rules = rules_of(name, arguments.program)
        if arguments.fixtures:
            write_fixtures(release, rules, arguments.folder, arguments.fixtures)
            continue
        for case in CASES:
            if arguments.only not in case.name or version_of(name) < case.since:
                continue
            row = compare(arguments.program, release, case, arguments.seed, arguments.operations, arguments.folder,
                          rules)
            print(text_of(row), flush=True)
            all_same &= row["same"]
            if arguments.json:
                with open(arguments.json, "a") as file:
                    file.write(json.dumps(row) + "\n")
            if row["same"] and not arguments.keep:
                for path in (arguments.folder / "runs").glob(pathlib.Path(row["recording"]).stem + ".*"):
                    path.unlink()
    sys.exit(0 if all_same else 1)


if __name__ == "__main__":
    main()
