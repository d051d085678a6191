#!/usr/bin/env python3
"""Compares the engine with PyTorch's own allocator, release by release, on random streams of requests.

    tools/oracle/oracle.py --program build/release/bin/oomscope --folder FOLDER [--release 2.11.0 ...]
                           [--operations N] [--random N] [--only NAME] [--seed N] [--rules-only] [--keep] [--again]
                           [--json FILE] [--fixtures FOLDER]

FOLDER keeps what is downloaded and built: for each release the unpacked wheel (torch-VERSION, fetched with pip), the
libraries that build.py makes (lib-VERSION) and the recordings (runs/). Each case of CASES, and --random N more whose
settings, limit, capacity and use are drawn, is driven through torch by drive.py under fake_cuda.cc. Then

  - the engine gets the same requests, by the rules of that release (replay_requests, beside PROGRAM): every address,
    refusal, driver call, final block and statistic is compared;
  - the trace is compared with what was asked: allocations, frees and calls of the driver (compare_trace.py);
  - `oomscope verify` reads the recording, and nothing else: what a trace does not tell it has to infer.

Prints one row a release and case, and at the end one a release; exit code 1 if the engine or a trace differs, or a case
does not run. What verify cannot read is counted, and no fault of the rules: docs/fidelity.md. --again compares what an
earlier run with the same seed, operations and --rules-only kept, after the engine has changed. --fixtures writes the
recordings that tests/fidelity/oracle_traces_test.py reads: a few short ones of each release, with what they were made
with.
"""
import argparse
import dataclasses
import functools
import gzip
import json
import os
import pathlib
import pickle
import random
import re
import shlex
import subprocess
import sys
import zipfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import build  # noqa: E402
from compare_trace import trace_difference, unread  # noqa: E402

RELEASES = ("2.1.2", "2.4.1", "2.6.0", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
NEEDED_BY_TORCH = ("filelock", "typing-extensions", "setuptools<82", "sympy", "networkx", "jinja2", "fsspec", "numpy<2")
GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to run the allocator. `since`: the first release that has what it needs."""
    name: str
    conf: str = ""
    use: str = ""
    placement: str = "random"
    capacity: int = 80 * GIB
    fraction: float = 0
    devices: int = 1
    since: tuple = (2, 1)
    other_confs: tuple = ()  # settings that it changes to on the way

    @property
    def has_whole_history(self):
        return "late" not in self.use

    @property
    def cap(self):
        """The limit in bytes, None without one."""
        return int(self.fraction * self.capacity) if self.fraction else None


MEM_POOL = (2, 6)  # torch.cuda.use_mem_pool
SMALL = int(1.6 * GIB)  # about what is live: refusals, retries, releases, OOMs
# From ordinary to expandable segments and back, so that a pool has both. Without max_split_size_mb: torch then frees
# segments in which something is alive (docs/fidelity.md).
CHANGES = ("expandable_segments:True", "expandable_segments:True,roundup_power2_divisions:4",
           "expandable_segments:False,garbage_collection_threshold:0.6",
           "expandable_segments:True,garbage_collection_threshold:0.5")
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
    Case("card too small", capacity=GIB),
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
    Case("non-split rounding", conf="max_split_size_mb:32,max_non_split_rounding_mb:64", since=(2, 6)),
    Case("large segments", conf="large_segment_size_mb:64", since=(2, 11)),
    Case("large segments, expandable", conf="expandable_segments:True,large_segment_size_mb:40", since=(2, 11)),
    Case("roundup list, end", conf="roundup_power2_divisions:[2:1,4:2,16:4,>:8]"),
    Case("expandable, ranges upwards", conf="expandable_segments:True", use="streams", placement="lowest",
         capacity=SMALL),
    Case("private pools, streams, limit", use="pools,streams", fraction=1.5 * SMALL / (80 * GIB)),
    Case("private pools, max_split_size, card full", conf="max_split_size_mb:64", use="pools", capacity=2 * SMALL),
    Case("expandable, private pools, streams, empty_cache", conf="expandable_segments:True",
         use="pools,streams,empty_cache"),
    Case("expandable, private pools, card full", conf="expandable_segments:True", use="pools,streams", capacity=SMALL),
    Case("renewed pools, empty_cache", use="renewed,streams,empty_cache"),
    Case("renewed pools, expandable, empty_cache", conf="expandable_segments:True", use="renewed,streams,empty_cache"),
    Case("capture, expandable, card full", conf="expandable_segments:True", use="capture,streams,empty_cache",
         capacity=int(2.2 * GIB)),
    Case("nested pools", use="nested,streams", since=MEM_POOL),
    Case("renewed pools", use="renewed,streams"),
    Case("custom pools", use="custom,streams", since=MEM_POOL),
    Case("custom pools, expandable", conf="expandable_segments:True", use="custom", since=(2, 10)),
    Case("capture", use="capture,streams,empty_cache"),
    Case("capture, expandable", conf="expandable_segments:True", use="capture,streams"),
    Case("two devices", use="streams,empty_cache", devices=2),
    Case("pools with options", use="options,streams,empty_cache", since=(2, 8)),
    Case("pools with options, card full", use="options,streams", capacity=SMALL, since=(2, 8)),
    Case("empty_cache in a scope", use="pools,inside,streams,empty_cache", since=MEM_POOL),
    Case("empty_cache in a capture", use="capture,inside,streams,empty_cache", since=(2, 8)),
    Case("limit that changes", use="limits,streams,empty_cache", conf="garbage_collection_threshold:0.8"),
    Case("settings that change", use="settings,streams", capacity=SMALL,
         conf="expandable_segments:False", other_confs=CHANGES),
    Case("settings that change, limits", use="settings,limits,streams,empty_cache", conf="expandable_segments:False",
         other_confs=CHANGES),
    Case("settings that change, pools, card full", use="settings,pools,streams", capacity=SMALL,
         conf="expandable_segments:False", other_confs=CHANGES, since=MEM_POOL),
    Case("two devices, expandable, card full", conf="expandable_segments:True", devices=2, placement="lowest",
         capacity=SMALL),
    Case("stacks", use="frames,streams", capacity=GIB),
    Case("history from mid-life", use="late,streams"),
    Case("history from mid-life, limit", use="late,streams,empty_cache", fraction=SMALL / (80 * GIB)),
    Case("history from mid-life, expandable", conf="expandable_segments:True", use="late,streams"),
)

FIXTURES = {"pools": "private pools, streams, empty_cache", "full": "card full, streams",
            "pools-full": "card full, private pools",
            "split": "max_split_size, limit, streams", "collection": "collection, streams",
            "expandable": "expandable, card full", "roundup": "roundup to 1", "renewed": "renewed pools",
            "unmap": "expandable, streams, empty_cache",
            "capture": "capture, expandable", "custom": "custom pools, expandable", "devices": "two devices",
            "oom": "card too small", "frames": "stacks", "changes": "settings that change, limits"}
FIXTURE_OPERATIONS = 400


def seed_of(case, seed):
    """Of one case, so that no two send the same requests."""
    return zlib.crc32(f"{seed} {case.name}".encode())


def random_case(release, seed, number):
    """Settings, limit, capacity and use drawn from what the release has and what does not end it: docs/fidelity.md."""
    rng = random.Random(f"{seed} {number}")
    conf, version = [], version_of(release)
    large = 20
    if version >= (2, 11) and rng.random() < 0.2:
        large = rng.choice((12, 24, 32, 40, 64))
        conf.append(f"large_segment_size_mb:{large}")
    expandable = rng.random() < 0.35
    if expandable:
        conf.append("expandable_segments:True")
    reclaims = not expandable or version >= (2, 6)
    fraction = rng.uniform(2, 5) * GIB / (80 * GIB) if rng.random() < 0.4 else 0
    if reclaims and rng.random() < 0.35:
        sizes = [size for size in (21, 32, 48, 100, 128, 200, 512) if size > large]
        conf.append(f"max_split_size_mb:{rng.choice(sizes)}")
    if reclaims and fraction and rng.random() < 0.5:
        conf.append(f"garbage_collection_threshold:{rng.uniform(0.3, 0.95):.2f}")
    if rng.random() < 0.3:
        divisions = lambda: rng.choice((1, 2, 4, 8, 16))  # noqa: E731
        several = f"[{rng.choice((1, 2, 4))}:{divisions()},{rng.choice((8, 16, 32))}:{divisions()},>:{divisions()}]"
        conf.append(f"roundup_power2_divisions:{rng.choice((str(divisions()), several))}")
    if version >= (2, 6) and rng.random() < 0.2:
        conf.append(f"max_non_split_rounding_mb:{rng.choice([size for size in (21, 32, 64, 100) if size > large])}")
    use = {what for what in ("streams", "empty_cache") if rng.random() < 0.5}
    full = rng.random() < 0.3
    if rng.random() < 0.3:
        use.add(rng.choice(("pools", "renewed") if version < MEM_POOL else ("pools", "renewed", "nested")))
    return Case(f"random {number}: {','.join(conf) or 'default'}", conf=",".join(conf), use=",".join(sorted(use)),
                placement=rng.choice(("lowest", "highest", "rising", "random")),
                capacity=int(rng.uniform(2.5, 6) * GIB) if full and not fraction else 80 * GIB, fraction=fraction,
                devices=rng.choice((1, 1, 1, 2)) if not use & {"pools", "renewed", "nested"} else 1)


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
        built = self.libraries / "libcuda.so.1"
        sources = [(HERE / name).stat().st_mtime for name in ("fake_cuda.cc", "build.py")]
        if not built.exists() or built.stat().st_mtime < max(sources):
            build.build(self.torch / "torch", self.libraries)

    @functools.cached_property
    def server(self):
        """A process of serve.py under this release's torch."""
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.libraries),
                           PYTHONPATH=f"{self.torch}:{python_packages(self.folder)}")
        environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
        return subprocess.Popen([sys.executable, str(HERE / "serve.py")], env=environment, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, script, conf, *arguments):
        """A program of this folder under this release's torch: its exit code, and what it wrote."""
        print(json.dumps({"script": script, "conf": conf, "arguments": arguments}), file=self.server.stdin, flush=True)
        answered = json.loads(self.server.stdout.readline())
        return subprocess.CompletedProcess(script, answered["code"], answered["stdout"], answered["stderr"])

    def close(self):
        if "server" in self.__dict__:
            self.server.stdin.close()

    def drive(self, case, out, seed, operations, options=()):
        arguments = [str(out), "--seed", str(seed), "--operations", str(operations), *arguments_of(case), *options]
        return self.run("drive.py", case.conf, *arguments)


def arguments_of(case):
    """Those of drive.py that a case decides."""
    arguments = ["--capacity", str(case.capacity), "--placement", case.placement, "--use", case.use]
    if case.fraction:
        arguments += ["--fraction", repr(case.fraction)]
    if case.devices > 1:
        arguments += ["--devices", str(case.devices)]
    for conf in (case.conf, *case.other_confs):
        arguments += ["--conf", conf]
    return arguments


def has_rules(program, name):
    """The program is asked about a file that is not there: whether it complains of the rules tells."""
    command = [program, "verify", os.devnull + "/x", "--rules", name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout or done.stderr)["error"]["where"] != "--rules"


def rules_of(release, program):
    """The rule set whose releases include this one: the newest that is not younger."""
    major, minor = version_of(release)
    names = (f"torch-{major}.{number}" for number in range(minor, -1, -1))
    return next(name for name in names if has_rules(program, name))


def beside(out, device, name):
    return out.with_suffix(f".{device}.{name}.json")


def verify(program, rules, case, out, device):
    command = [program, "verify", str(out), "--rules", rules, "--conf", case.conf, "--device", str(device), "--json"]
    if case.has_whole_history:
        command += ["--stats", str(beside(out, device, "stats"))]
    if case.fraction:
        command += ["--cap", str(case.cap)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        return {"error": done.stderr.strip()}
    return json.loads(done.stdout)


def replay(program, rules, out):
    """What replay_requests says."""
    with open(out.with_suffix(".requests")) as requests:
        done = subprocess.run([program.parent / "replay_requests", rules, str(out)], stdin=requests,
                              capture_output=True, text=True)
    return json.loads(done.stdout or json.dumps({"first_difference": done.stderr.strip() or "it crashed"}))


def recording_of(release, case, arguments):
    """Where it lies. Other options make another recording."""
    name = re.sub(r"[^a-z0-9]+", "-", case.name.partition(":")[0].lower())
    history = "-rules-only" if arguments.rules_only else ""
    return release.folder / "runs" / f"{release.name}-{name}-{arguments.seed}-{arguments.operations}{history}.pickle"


def compare(program, release, case, rules, arguments):
    """One row: what was compared, summed over the devices, and what differed."""
    out = recording_of(release, case, arguments)
    out.parent.mkdir(exist_ok=True)
    row = {"release": release.name, "rules": rules, "case": case.name, **options_of(arguments), "recording": str(out),
           "same": False, "trace_difference": "", "unread": None}
    options = ["--no-history"] if arguments.rules_only else []
    kept = arguments.again and out.exists()
    driven = None if kept else release.drive(case, out, seed_of(case, arguments.seed), arguments.operations, options)
    if driven is not None and driven.returncode != 0:
        out.unlink(missing_ok=True)
        last = (driven.stderr.strip().splitlines() or [f"exit code {driven.returncode}"])[-1]
        return dict(row, failed=f"torch stopped: {last}")
    row["engine"] = engine = replay(program, rules, out)
    if not arguments.rules_only:
        row["trace_difference"] = difference_of_traces(case, out)
        row["unread"] = unread_devices(program, rules, case, out)
    row["same"] = (not engine["first_difference"] and not engine["stats_differing"] and engine["stats"] > 0 and
                   not row["trace_difference"])
    return row


def difference_of_traces(case, out):
    """The first between the recording and what was asked, "" without one."""
    with open(out, "rb") as file:
        snapshot = pickle.load(file)
    log = out.with_suffix(".requests").read_text().splitlines()
    differences = (trace_difference(snapshot, log, device, case.has_whole_history) for device in range(case.devices))
    return next(filter(None, differences), "")


def unread_devices(program, rules, case, out):
    """What verify makes nothing of, of the first device where there is something; "" if it reads all."""
    answers = (unread(verify(program, rules, case, out, device)) for device in range(case.devices))
    return next(filter(None, answers), "")


def fixture_options(case):
    return ["--seed", "1", "--operations", str(FIXTURE_OPERATIONS), *arguments_of(case)]


def command_of(release, case, short):
    """For a shell in the repository, where FOLDER is that of an earlier run of this program."""
    settings = f"PYTORCH_CUDA_ALLOC_CONF={shlex.quote(case.conf)} " if case.conf else ""
    return (f"LD_LIBRARY_PATH=$FOLDER/lib-{release} PYTHONPATH=$FOLDER/torch-{release}:$FOLDER/packages {settings}" +
            shlex.join(["tools/oracle/drive.py", f"{short}.pickle", *fixture_options(case)]))


def write_fixtures(program, release, rules, target):
    """NAME.pickle.zst, NAME.requests.gz and NAME.json: the recording, the requests, and what both were made with."""
    target.mkdir(parents=True, exist_ok=True)
    for short, name in FIXTURES.items():
        case = next(case for case in CASES if case.name == name)
        if version_of(release.name) < case.since:
            continue
        out = release.folder / "runs" / f"fixture-{release.name}-{short}.pickle"
        out.parent.mkdir(exist_ok=True)
        driven = release.run("drive.py", case.conf, str(out), *fixture_options(case))
        if driven.returncode != 0:
            print(f"{release.name} {short}: torch stopped: {driven.stderr.strip().splitlines()[-1]}")
            continue
        subprocess.run(["zstd", "-19", "-q", "-f", str(out), "-o", str(target / f"{release.name}-{short}.pickle.zst")],
                       check=True)
        packed = target / f"{release.name}-{short}.requests.gz"
        packed.write_bytes(gzip.compress(out.with_suffix(".requests").read_bytes(), mtime=0))
        read = not unread_devices(program, rules, case, out)
        made = {"torch": release.name, "case": case.name, "rules": rules, "conf": case.conf, "cap_bytes": case.cap,
                "command": command_of(release.name, case, short),
                "can_be_read": read,  # from the recording alone
                "stats": [json.loads(beside(out, device, "stats").read_text()) for device in range(case.devices)]}
        (target / f"{release.name}-{short}.json").write_text(json.dumps(made) + "\n")
        remove_recording(out)


def text_of(row):
    begin = f"{row['release']:8} {row['case']:44.44}"
    if "failed" in row:
        return f"{begin} {row['failed']}"
    engine = row["engine"]
    differs = engine["first_difference"] or row["trace_difference"] or engine["stats_differing"] or "nothing compared"
    verdict = "same" if row["same"] else f"DIFFERS: {differs}"
    read = "" if row["unread"] is None else f"; not read: {row['unread']}" if row["unread"] else "; read"
    return (f"{begin} {engine.get('mallocs', 0):>6} {engine.get('ooms', 0):>5} {engine.get('driver_calls', 0):>6} "
            f"{verdict}{read}")


def table(rows):
    """The rows of all cases of a release in one, as docs/fidelity.md has them."""
    lines = ["| release | rules | cases | operations | requests | allocations | OOMs | driver calls | statistics "
             "| differ | read from the trace |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for release in dict.fromkeys(row["release"] for row in rows):
        own = [row for row in rows if row["release"] == release]
        compared = [row for row in own if "failed" not in row]
        engine = {key: f"{sum(row['engine'].get(key, 0) for row in compared):,}"
                  for key in ("requests", "mallocs", "ooms", "driver_calls", "stats")}
        lines.append(f"| {release} | {own[0]['rules']} | {len(compared)} of {len(own)} | "
                     f"{sum(row['operations'] for row in compared):,} | {engine['requests']} | {engine['mallocs']} | "
                     f"{engine['ooms']} | {engine['driver_calls']} | {engine['stats']} | "
                     f"{sum(not row['same'] for row in compared)} | "
                     f"{sum(row['unread'] == '' for row in compared)} of "
                     f"{sum(row['unread'] is not None for row in compared)} |")
    return "\n".join(lines)


def cases_of(release, arguments):
    drawn = [random_case(release, arguments.seed, number) for number in range(arguments.random)]
    return [case for case in (*CASES, *drawn)
            if arguments.only in case.name and version_of(release) >= case.since]


def earlier_rows(arguments):
    """Those that stand in the file already: a long run can be stopped and taken up again."""
    if not arguments.json or not arguments.json.exists():
        return []
    rows = [json.loads(line) for line in arguments.json.read_text().splitlines()]
    return [row for row in rows if options_of(arguments).items() <= row.items()]


def options_of(arguments):
    """Those that decide a row besides release and case."""
    return {"seed": arguments.seed, "operations": arguments.operations, "rules_only": arguments.rules_only}


def remove_recording(out):
    for path in out.parent.glob(out.stem + ".*"):
        path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--release", action="append", help="may be repeated; default: all")
    parser.add_argument("--operations", type=int, default=40000, help="of each case")
    parser.add_argument("--random", type=int, default=0, help="drawn cases a release")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules-only", action="store_true", help="record no history: the engine alone, half the time")
    parser.add_argument("--keep", action="store_true", help="keep the recordings that agree as well")
    parser.add_argument("--again", action="store_true", help="drive only those that --keep has not left")
    parser.add_argument("--json", type=pathlib.Path, help="the rows, one a line; what stands there is not run again")
    parser.add_argument("--fixtures", type=pathlib.Path, help="write short recordings here, and compare nothing")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    folder = arguments.folder.resolve()
    rows = earlier_rows(arguments)
    known = {(row["release"], row["case"]) for row in rows}
    for name in arguments.release or RELEASES:
        release = Release(name, folder)
        rules = rules_of(name, arguments.program)
        if arguments.fixtures:
            write_fixtures(arguments.program, release, rules, arguments.fixtures)
        for case in [] if arguments.fixtures else cases_of(name, arguments):
            if (name, case.name) in known:
                continue
            row = compare(arguments.program, release, case, rules, arguments)
            rows.append(row)
            print(text_of(row), flush=True)
            if arguments.json:
                with open(arguments.json, "a") as file:
                    file.write(json.dumps(row) + "\n")
            if row["same"] and not row["unread"] and not arguments.keep:
                remove_recording(pathlib.Path(row["recording"]))
        release.close()
    if rows:
        print(f"\n{table(rows)}")
    sys.exit(0 if all(row["same"] for row in rows) else 1)


if __name__ == "__main__":
    main()
