#!/usr/bin/env python3
"""Changes the engine in small ways, one at a time, and looks whether a recording or a hand-written case notices.

A change that nothing notices is a rule that nothing tests. Each mutant is built out of place, incrementally; then the
engine's unit tests run, and every recording is replayed. Prints one row a mutant, as docs/fidelity.md shows them.

    tools/mutants.py [--only TEXT] [--list] [--folder FOLDER] [--jobs N]

Exit code 1 if a mutant survives that is not listed as one that cannot matter (or if one of those is noticed).
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPIED = ("src", "include", "tests", "tools", "cmake", "bench", "CMakeLists.txt", "LICENSE", "THIRD_PARTY_NOTICES.md")
TARGETS = ("caching_test", "fidelity_test")
SECONDS = 240  # a mutant may never end: that counts as noticed

ALLOCATOR = "src/caching/allocator.cc"
EXPANDABLE = "src/caching/expandable.cc"
RECLAIM = "src/caching/reclaim.cc"
SCOPES = "src/caching/scopes.cc"
RULES = "src/caching/rules.cc"
SIZES = "src/caching/sizes.h"

TORCH_211 = 'kTorch211{.name = "torch-2.11"'

# (name, file, exact old text, new text, why it cannot matter; "" where something must notice)
MUTANTS = [
    # ties and search
    ("tie-break of 2.13 (oldest segment) instead of address", RULES, TORCH_211,
     TORCH_211 + ", .tie_break = TieBreak::segment_counter", ""),
    ("tie-break of 2.12 (first built block) instead of address", RULES, TORCH_211,
     TORCH_211 + ", .tie_break = TieBreak::block_counter", ""),
    ("no growth-aware best fit: first candidate", ALLOCATOR,
     "while (candidate->segment->is_expandable) {\n      Block* next", "while (false) {\n      Block* next", ""),
    ("growth-aware best fit moves on at equal size", ALLOCATOR,
     "expandable_size(*next) >= expandable_size(*candidate)", "expandable_size(*next) > expandable_size(*candidate)",
     ""),
    ("expandable free blocks are refused", ALLOCATOR, "  if (request.expandable) {\n    auto expandable_size",
     "  if (request.expandable && request.size == 1) {\n    auto expandable_size", ""),
    ("oversize block given to a small request", ALLOCATOR,
     "if (size < max_split) return block_size < max_split;", "if (size < max_split) return true;", ""),
    ("block of exactly max_split_size is not oversize", ALLOCATOR,
     "return block_size < max_split;", "return block_size <= max_split;", ""),
    ("no bound of size + 20 MiB for oversize requests", ALLOCATOR,
     "return block_size - size < rounding;", "return block_size - size < 1000 * rounding;", ""),
    ("bound of size + 20 MiB is inclusive", ALLOCATOR,
     "return block_size - size < rounding;", "return block_size - size <= rounding;", ""),
    # splitting and merging
    ("large block split from 512 bytes on", ALLOCATOR,
     "request.size < settings_.max_split_size_bytes && remaining > kSmallSize",
     "request.size < settings_.max_split_size_bytes && remaining >= kMinBlockSize", ""),
    ("large block split at exactly 1 MiB", ALLOCATOR, "&& remaining > kSmallSize", "&& remaining >= kSmallSize", ""),
    ("large block split although at least max_split_size", ALLOCATOR,
     "return request.size < settings_.max_split_size_bytes && remaining > kSmallSize;",
     "return remaining > kSmallSize;", ""),
    ("small block split above 512 bytes only", ALLOCATOR, "if (remaining < kMinBlockSize) return",
     "if (remaining <= kMinBlockSize) return", ""),
    ("expandable large block split as a normal one", ALLOCATOR, "if (request.pool->is_small || expandable) return",
     "if (request.pool->is_small) return", ""),
    ("request gets the neighbour's stale requested size", ALLOCATOR, "  const int64_t absorbed = neighbour->size;",
     "  into.requested_size = neighbour->requested_size;\n  const int64_t absorbed = neighbour->size;", ""),
    ("pending neighbours are absorbed", ALLOCATOR, "neighbour == nullptr || !neighbour->is_idle() ||",
     "neighbour == nullptr || neighbour->allocated ||", ""),
    # sizes
    ("round-up list read one interval lower, as documented", SIZES,
     "return log2 < 20 ? 0 : (log2 > 35 ? 15 : log2 - 20);", "return log2 < 19 ? 0 : (log2 > 34 ? 15 : log2 - 19);", ""),
    ("exactly 1 MiB counts as large", SIZES,
     "return rounded_size <= kSmallSize; }", "return rounded_size < kSmallSize; }", ""),
    ("10 MiB still gets a 20 MiB segment", SIZES, "if (rounded_size < kMinLargeAlloc) return",
     "if (rounded_size <= kMinLargeAlloc) return", ""),
    ("large segments rounded to 4 MiB", SIZES, "kRoundLarge = 2097152", "kRoundLarge = 4194304", ""),
    ("a power of two is rounded by divisions too", SIZES,
     "  if (std::has_single_bit(value)) return request;\n", "",
     "the quantum of a power of two divides it, so rounding leaves it alone"),
    # the limit and the chain of attempts
    ("limit test one byte lower (>= instead of >)", ALLOCATOR,
     "limit_bytes_ && total > *limit_bytes_", "limit_bytes_ && total >= *limit_bytes_", ""),
    ("limit test with the rounded size", ALLOCATOR,
     "total_reserved_ + allocation_size(request.size, settings_);\n  if (limit", "total_reserved_ + request.size;\n  if (limit",
     ""),
    ("limit test of expandable requests with the rounded size", ALLOCATOR,
     "total_reserved_ + allocation_size(request.size, settings_);\n  if (limit",
     "total_reserved_ + (request.expandable ? request.size : allocation_size(request.size, settings_));\n  if (limit", ""),
    ("retry not counted", ALLOCATOR, "if (is_retry) stats_.num_alloc_retries += 1;",
     "if (is_retry) stats_.num_alloc_retries += 0;", ""),
    ("full release inside a pool scope", ALLOCATOR, "if (!request.suspended && refusal_", "if (refusal_", ""),
    ("use_on_oom pools are never asked", RULES, TORCH_211, TORCH_211 + ", .use_on_oom = UseOnOom::never", ""),
    ("oldest pool scope first", RULES, TORCH_211, TORCH_211 + ", .newest_scope_first = false", ""),
    ("no expandable segments in private pools", RULES, TORCH_211,
     TORCH_211 + ", .private_expandable = PrivateExpandable::no", ""),
    ("only a capture suspends events", RULES, TORCH_211, TORCH_211 + ", .only_capture_suspends = true", ""),
    ("capture of any stream suspends in 2.13", SCOPES, "scope.capturing && (!current ||", "scope.capturing && (true ||", ""),
    ("empty_cache in a scope is an assertion", RULES, TORCH_211, TORCH_211 + ", .suspended_release_asserts = true", ""),
    ("empty_cache in a scope is partial up to 2.4", RULES, "  rules.suspended_release_asserts = true;\n", "", ""),
    ("expandable segments with a custom allocator are no error up to 2.9", RULES,
     "PrivateExpandable::refuse_custom", "PrivateExpandable::yes", ""),
    # garbage collection
    ("collection not run before the driver is asked", ALLOCATOR, "  if (gc_active()) garbage_collect();\n", "", ""),
    ("collection ignores ages", RECLAIM, "candidate->is_split() || age_of(*candidate) < threshold_age",
     "candidate->is_split()", ""),
    ("collection stops at its target inside a pass", RECLAIM, "        freed = true;\n        reclaimed +=",
     "        if (reclaimed >= target) break;\n        freed = true;\n        reclaimed +=", ""),
    ("collection makes one pass", RECLAIM, "while (reclaimed < target && freed && count > 0)",
     "while (reclaimed == 0 && freed && count > 0)", ""),
    ("mean age rounded down", RECLAIM, "total_age / static_cast<double>(count);",
     "static_cast<double>(static_cast<int64_t>(total_age) / static_cast<int64_t>(count));", ""),
    ("age not reset when a block is freed again", ALLOCATOR, "  block.gc_base = block.segment->pool->searches;",
     "  if (block.gc_base == 0) block.gc_base = block.segment->pool->searches;", ""),
    ("split blocks count in the mean age", RECLAIM, "      if (block->is_split()) continue;\n      total_age",
     "      total_age", ""),
    ("collection on under a limit of the whole card", RULES, TORCH_211,
     TORCH_211 + ", .gc_needs_fraction_below_one = false", ""),
    ("every search counts twice in ages", ALLOCATOR, "request.pool->searches += 1;", "request.pool->searches += 2;",
     "ages and their mean double together"),
    # releasing
    ("release_available off", RECLAIM, "if (max_split == kUnlimitedBytes) return false;", "if (max_split > 0) return false;",
     ""),
    ("release_available satisfied by the request's size alone", RECLAIM,
     "const int64_t wanted = std::max(request.size, max_split);", "const int64_t wanted = request.size;",
     "a free block between the size of a request and max_split_size would have served it"),
    ("small set released before the large one", RECLAIM, "    release_blocks(large_);\n    release_blocks(small_);",
     "    release_blocks(small_);\n    release_blocks(large_);", ""),
    ("large set of a private pool released before the small one", RECLAIM,
     "    release_blocks(pool.small);\n    release_blocks(pool.large);",
     "    release_blocks(pool.large);\n    release_blocks(pool.small);", ""),
    ("full release does not wait for pending blocks", RECLAIM,
     "    entry = held_.erase(entry);\n    block->held = false;\n    block->event_count -= 1;\n    if (block->event_count == 0) give_back(block);",
     "    ++entry;", ""),
    # expandable segments
    ("growth does not start at the free block in front", EXPANDABLE,
     "allocatable(unmapped.prev) ? unmapped.prev : &unmapped", "&unmapped", ""),
    ("2 MiB pages in the large pool", EXPANDABLE, "pool.is_small ? kSmallBuffer : settings_.large_segment_size_bytes",
     "kSmallBuffer", ""),
    ("range as large as the card, without the eighth", SIZES, "round_up(total_bytes + total_bytes / 8, page_bytes)",
     "round_up(total_bytes, page_bytes)", ""),
    ("pages counted from address 0", EXPANDABLE, "const uint64_t offset = block.address - segment.address;",
     "const uint64_t offset = block.address - segment.address + (1 << 21);", ""),
    ("a whole range that is unmapped stays", EXPANDABLE, "  if (block->is_split()) return;\n",
     "  if (block != nullptr) return;\n", ""),
    ("earlier map steps are not counted", EXPANDABLE, "  stats_.num_device_alloc += 1;\n",
     "  if (to_map->next == nullptr || !to_map->next->mapped) stats_.num_device_alloc += 1;\n",
     ""),
    # statistics
    ("inactive_split changed per neighbour, not net", ALLOCATOR, "    if (absorbed > 0) split_count -= 1;\n",
     "    if (absorbed > 0 && !expandable) stats_.inactive_split.decrease(small, 1);\n", ""),
    ("inactive_split counts expandable blocks", ALLOCATOR, "  if (!result->segment->is_expandable) {", "  {", ""),
    ("requested_bytes counts the rounded size", ALLOCATOR,
     "stats_.requested_bytes.increase(small, request.requested);", "stats_.requested_bytes.increase(small, request.size);",
     ""),
    ("oversize allocation counts the request", ALLOCATOR,
     "if (result->size >= settings_.max_split_size_bytes) stats_.oversize_allocations.increase(1);",
     "if (request.size >= settings_.max_split_size_bytes) stats_.oversize_allocations.increase(1);", ""),
]


def run(command, seconds=None, environment=None, folder=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, cwd=folder,
                              env={**os.environ, **(environment or {})})
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        return None, (expired.stdout or b"").decode(errors="replace")


def build(tree, folder, jobs):
    return run(["cmake", "--build", str(folder), "--parallel", str(jobs), "--target", *TARGETS])


def prepare(tree, folder):
    tree.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source, target = ROOT / name, tree / name
        if source.is_dir():
            # Files that did not change keep their time, so a second run builds little.
            shutil.copytree(source, target, dirs_exist_ok=True, copy_function=copy_if_newer)
            for path in sorted(target.rglob("*"), reverse=True):
                if path.is_file() and not (source / path.relative_to(target)).exists():
                    path.unlink()
        elif source.exists():
            copy_if_newer(source, target)
    code, text = run(["cmake", "-S", str(tree), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                      "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DOOMSCOPE_WERROR=OFF", "-DOOMSCOPE_STATIC=OFF",
                      "-DOOMSCOPE_TESTS=ON", "-DOOMSCOPE_BENCH=OFF"])
    if code != 0:
        sys.exit(f"mutants.py: the copy does not configure:\n{text}")


def copy_if_newer(source, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    if target.exists() and target.read_bytes() == source.read_bytes():
        return str(target)
    return shutil.copy(source, target)


class Verdict:
    def __init__(self, tests, recordings, stopped):
        self.tests = tests            # names of unit tests that fail
        self.recordings = recordings  # names of recordings that notice
        self.stopped = stopped        # crashed or never ended

    def noticed(self):
        return bool(self.tests or self.recordings or self.stopped)


def judge(folder, data):
    stopped = ""
    code, text = run([str(folder / "bin" / "caching_test"), "--gtest_brief=1"], SECONDS)
    tests = sorted(set(re.findall(r"^\[  FAILED  \] (\S+?\.\S+)", text, re.M)))
    if code is None or code < 0:
        stopped = "unit tests never end" if code is None else "unit tests crash"
    code, text = run([str(folder / "bin" / "fidelity_test"), "--gtest_filter=Mutants.*"], SECONDS,
                     {"OOMSCOPE_MUTANTS": "1", "OOMSCOPE_DATA": str(data)})
    recordings = re.findall(r"^NOTICED (\S+)", text, re.M)
    if code is None or code < 0:
        stopped = stopped or ("a recording never ends" if code is None else "a recording crashes it")
    return Verdict(tests, recordings, stopped)


def short(names, shown=1):
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def row(name, verdict, reason):
    recordings = f"{len(verdict.recordings)}" + (f" ({short(verdict.recordings)})" if verdict.recordings else "")
    tests = f"{len(verdict.tests)}" + (f" ({short(verdict.tests)})" if verdict.tests else "")
    note = verdict.stopped or (f"cannot matter: {reason}" if reason else "")
    return f"| {name} | {recordings} | {tests} | {note} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose name contains this text")
    parser.add_argument("--list", action="store_true", help="print the mutants and check that their texts are found once")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()

    data = pathlib.Path(os.environ.get("OOMSCOPE_DATA", ROOT.parent / "shared" / "data"))
    chosen = [mutant for mutant in MUTANTS if options.only in mutant[0]]
    for name, file, old, _, _ in chosen:
        times = (ROOT / file).read_text().count(old)
        if times != 1:
            sys.exit(f"mutants.py: {name}: its text occurs {times} times in {file}; bring the entry up to date")
    if options.list:
        print("\n".join(f"{name} ({file})" for name, file, _, _, _ in chosen))
        return 0

    tree, folder = options.folder / "tree", options.folder / "build"
    prepare(tree, folder)
    code, text = build(tree, folder, options.jobs)
    if code != 0:
        sys.exit(f"mutants.py: the unchanged engine does not build:\n{text[-4000:]}")
    verdict = judge(folder, data)
    if verdict.noticed():
        sys.exit(f"mutants.py: the unchanged engine fails: {short(verdict.tests + verdict.recordings, 5)} {verdict.stopped}")
    if not (data / "h200").is_dir():
        print(f"no recordings in {data}: those of tests/data alone are replayed", file=sys.stderr)

    print("| changed | recordings that notice | engine tests that notice | |\n|---|---|---|---|", flush=True)
    start = time.time()
    bad = []
    for name, file, old, new, reason in chosen:
        path = tree / file
        original = path.read_text()
        path.write_text(original.replace(old, new))
        try:
            code, text = build(tree, folder, options.jobs)
            if code != 0:
                sys.exit(f"mutants.py: {name} does not build:\n{text[-3000:]}")
            verdict = judge(folder, data)
        finally:
            path.write_text(original)
        print(row(name, verdict, reason), flush=True)
        if verdict.noticed() == bool(reason):
            bad.append(name)
    print(f"{len(chosen)} mutants in {time.time() - start:.0f} s; {len(bad)} not as expected", file=sys.stderr)
    for name in bad:
        print(f"  {name}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
