#!/usr/bin/env python3
"""Asks each PyTorch release how its allocator decides what releases decide differently, one small program a question.

    tools/oracle/switches.py --folder FOLDER [--release 2.11.0 ...] [--only NAME]

FOLDER as for oracle.py. Prints the table of docs/fidelity.md, one row a switch and one column a release, and marks what
is not as SWITCHES expects (which says what the engine's rules say, src/caching/rules.cc); exit code 1 if anything is.
What only random requests show (tie-breaks, bounds of large blocks) is oracle.py's.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
MIB, GIB = 1 << 20, 1 << 30
NO_OPTION, ASSERTS = "no such option", "assertion"


# --- the questions, each in a process of its own under the torch that is asked -------------------------------------

def tensor(size):
    import torch
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def segments():
    import torch
    return torch.cuda.memory._snapshot()["segments"]


def block_of(made):
    """(segment, block) that a tensor lies in."""
    for segment in segments():
        address = segment["address"]
        for block in segment["blocks"]:
            if address == made.data_ptr():
                return segment, block
            address += block["size"]
    raise LookupError("a tensor outside all segments")


def trace():
    import torch
    return torch.cuda.memory._snapshot()["device_traces"][0]


def outcome(call, on_error):
    """The call's result, or a text for its error: of a RuntimeError that says `text`, on_error[text]."""
    try:
        return call()
    except (RuntimeError, ValueError, TypeError) as error:
        for text, answer in on_error.items():
            if text in str(error):
                return answer
        raise


class Pool:
    """A private pool that a scope opens for: MemPool where torch has it, else one of graph capture."""

    def __init__(self, **options):
        import torch
        from drive import ObjectScope, StreamScope
        if hasattr(torch.cuda, "MemPool"):
            self.pool, self.open = torch.cuda.MemPool(**options), ObjectScope
        else:
            side = torch.cuda.Stream()
            self.pool, self.open = torch.cuda.graph_pool_handle(), lambda pool: StreamScope(pool, side)
        self.id = tuple(getattr(self.pool, "id", self.pool))

    def __enter__(self):
        self.scope = self.open(self.pool)

    def __exit__(self, *_):
        self.scope.leave()


def ask_round_by_one(card):
    return "rounds" if block_of(tensor(1000))[1]["size"] == 1024 else "leaves sizes unrounded"


def ask_end_of_list(card):
    size = block_of(tensor(17 * MIB))[1]["size"]
    return {20 * MIB: "behind the last boundary", 18 * MIB: "at the last boundary"}[size]


def ask_large_segment(card):
    return "option" if block_of(tensor(2 * MIB))[0]["total_size"] == 40 * MIB else "ignored"


def ask_non_split_rounding(card):
    large = tensor(100 * MIB)
    del large
    return "option" if block_of(tensor(70 * MIB))[1]["size"] == 100 * MIB else "ignored"


def ask_scopes(card):
    first, second = Pool(), Pool()
    with first:
        def inner():
            with second:
                return tensor(2 * MIB)
        made = outcome(inner, {"INTERNAL ASSERT": "one scope a stream"})
    # Not inside: there, 2.6 shows the active pool alone.
    names = {first.id: "oldest scope", second.id: "newest scope"}
    return made if isinstance(made, str) else names[tuple(block_of(made)[0]["segment_pool_id"])]


def ask_suspension(card):
    import torch
    card.hold_events(True)
    kept = tensor(4 * MIB)
    kept.record_stream(torch.cuda.Stream())
    del kept
    card.complete_events(1)
    with Pool():
        made = tensor(512)
        stats = torch.cuda.memory_stats()
        del made
    return "any scope" if stats["active.all.current"] > stats["allocation.all.current"] else "a capturing stream"


def ask_suspended_release(card):
    import torch
    idle = tensor(40 * MIB)
    del idle
    with Pool():
        on_error = {"captures_underway.empty()": ASSERTS, "captures_underway": ASSERTS}
        done = outcome(lambda: torch.cuda.empty_cache() or "done", on_error)
    return done if done == ASSERTS else "skips the default pool" if segments() else "releases"


def ask_suspended_oom(card):
    import torch
    card.set_capacity(100 * MIB)
    idle = tensor(40 * MIB)
    del idle
    with Pool():
        try:
            tensor(80 * MIB)
            return "releases"
        except torch.cuda.OutOfMemoryError:
            return "skips the release"
        except RuntimeError as error:
            return ASSERTS if "ASSERT" in str(error) else str(error)


def ask_expandable_pool(card):
    with Pool():
        return "yes" if block_of(tensor(2 * MIB))[0]["is_expandable"] else "no"


def ask_expandable_custom_pool(card):
    import torch
    if not hasattr(torch.cuda, "MemPool"):
        return NO_OPTION
    pool = torch.cuda.MemPool(card.segment_allocator())
    with torch.cuda.use_mem_pool(pool):
        answer = outcome(lambda: "on" if block_of(tensor(2 * MIB))[0]["is_expandable"] else "off",
                         {"doesn't currently support": "error"})
    return answer


def ask_use_on_oom(card):
    import torch

    def ask():
        pool = torch.cuda.MemPool(use_on_oom=True)
        card.set_capacity(150 * MIB)
        idle = tensor(60 * MIB)
        with torch.cuda.use_mem_pool(pool):
            spare = tensor(80 * MIB)
        del idle, spare
        made = tensor(70 * MIB)
        if tuple(block_of(made)[0]["segment_pool_id"]) == (0, 0):
            return "after all releases"
        return "before any release"
    return NO_OPTION if not hasattr(torch.cuda, "MemPool") else outcome(ask, {"use_on_oom": NO_OPTION})


def ask_no_split(card):
    import torch

    def ask():
        pool = torch.cuda.MemPool(no_split=True)
        with torch.cuda.use_mem_pool(pool):
            made = tensor(2 * MIB)
        return "option" if block_of(made)[1]["size"] == 20 * MIB else "ignored"
    return NO_OPTION if not hasattr(torch.cuda, "MemPool") else outcome(ask, {"no_split": NO_OPTION})


def ask_release_available(card):
    import torch
    torch.cuda.set_per_process_memory_fraction(300 / (80 << 10))
    idle = tensor(100 * MIB)
    del idle
    made = outcome(lambda: tensor(260 * MIB), {"INTERNAL ASSERT": ASSERTS})
    return made if isinstance(made, str) else "skips expandable blocks"


def ask_collection(card):
    import torch
    torch.cuda.set_per_process_memory_fraction(1.0)
    live = [tensor(100 * MIB) for _ in range(4)]
    live.clear()
    live.append(tensor(200 * MIB))
    collected = any(event["action"] == "segment_free" for event in trace())
    return "whenever a fraction was set" if collected else "below a fraction of 1"


def ask_collection_expandable(card):
    """With a range that is one free block: reserved while the card was small, mapped to its end when it was large."""
    import torch
    card.set_capacity(100 * MIB)
    idle = tensor(2 * MIB)
    card.set_capacity(80 * GIB)
    torch.cuda.set_per_process_memory_fraction(400 / (80 << 10))
    del idle
    reserved = next(size for kind, _, size in card.calls() if kind == "reserve")
    idle = tensor(reserved)
    del idle
    made = outcome(lambda: tensor(reserved + MIB), {"INTERNAL ASSERT": ASSERTS})
    unmapped = any(event["action"] in ("segment_unmap", "segment_free") for event in trace())
    return made if isinstance(made, str) else "releases them" if unmapped else "skips expandable blocks"


def ask_limit(card):
    """A limit of 40 MiB less a fraction of a byte."""
    import torch
    torch.cuda.set_per_process_memory_fraction((40 * MIB - 0.3) / (80 * GIB))
    return outcome(lambda: tensor(40 * MIB) is not None and "round", {"out of memory": "floor"})


def ask_rejection(card):
    import torch
    torch.cuda.set_per_process_memory_fraction(1.0)  # else the setting's fraction is the limit too, and tested first
    try:
        tensor(20 * GIB)
        return "ignored"
    except torch.cuda.OutOfMemoryError as error:
        return "option" if "preemptively" in str(error) else "ignored"


def ask_reserve(card):
    tensor(2 * MIB)
    reserved = next(size for kind, _, size in card.calls() if kind == "reserve")
    return "option" if reserved < 80 * GIB else "9/8 of the card"


def ask_order_of_release(card):
    import torch
    idle = tensor(2 * MIB)
    del idle
    card.keep_segments(True)
    outcome(torch.cuda.empty_cache, {"CUDA error": None})
    card.keep_segments(False)
    return "before cudaFree" if any(event["action"] == "segment_free" for event in trace()) else "after cudaFree"


def ask_frees_without_history(card):
    import torch
    torch.cuda.memory._record_memory_history(enabled=None)
    early = tensor(2 * MIB)
    record()
    del early
    return "written" if any(event["action"] == "free_completed" for event in trace()) else "omitted"


def ask_forced_addresses(card):
    """Restores a pool's checkpoint, as cudagraph trees do."""
    import torch
    pool = Pool()
    with pool:
        kept = tensor(4 * MIB)
        gone = tensor(4 * MIB)
    state = torch._C._cuda_getCheckpointState(0, pool.id)
    addresses = [kept.data_ptr(), gone.data_ptr()]
    before = len(trace())
    storages = [made.untyped_storage() for made in (kept, gone)]
    stale = [storage._cdata for storage in storages]
    torch._C._cuda_setCheckpointPoolState(0, state, stale, [])
    placed = [event["addr"] for event in trace()[before:] if event["action"] == "alloc"]
    return "restored in place" if placed[:2] == addresses else "elsewhere"


# --- what is expected, and the table ---------------------------------------------------------------------------------

class Switch:
    """`answers`: (first release, answer), oldest first. `conf`: what the process runs with."""

    def __init__(self, title, ask, answers, conf=""):
        self.title, self.ask, self.answers, self.conf = title, ask, answers, conf

    def expected(self, version):
        return [answer for since, answer in self.answers if version >= since][-1]


OLD = (2, 1)
SWITCHES = (
    Switch("roundup_power2_divisions:1", ask_round_by_one, [(OLD, "leaves sizes unrounded"), ((2, 4), "rounds")],
           "roundup_power2_divisions:1"),
    Switch("`>` fills from", ask_end_of_list,
           [(OLD, "at the last boundary"), ((2, 10), "behind the last boundary")],
           "roundup_power2_divisions:[2:1,4:2,16:4,>:8]"),
    Switch("large_segment_size_mb", ask_large_segment, [(OLD, NO_OPTION), ((2, 11), "option")],
           "large_segment_size_mb:40"),
    Switch("max_non_split_rounding_mb", ask_non_split_rounding, [(OLD, NO_OPTION), ((2, 5), "option")],
           "max_split_size_mb:50,max_non_split_rounding_mb:60"),
    Switch("an allocation goes to", ask_scopes,
           [(OLD, "one scope a stream"), ((2, 4), "oldest scope"), ((2, 10), "newest scope")]),
    Switch("events wait for the end of", ask_suspension, [(OLD, "any scope"), ((2, 13), "a capturing stream")]),
    Switch("empty_cache in a scope", ask_suspended_release,
           [(OLD, ASSERTS), ((2, 5), "skips the default pool"), ((2, 13), "releases")]),
    Switch("OOM in a scope", ask_suspended_oom, [(OLD, "skips the release"), ((2, 13), "releases")]),
    Switch("expandable private pools", ask_expandable_pool, [(OLD, "no"), ((2, 5), "yes")], "expandable_segments:True"),
    Switch("expandable, own segment allocator", ask_expandable_custom_pool,
           [(OLD, NO_OPTION), ((2, 6), "on"), ((2, 8), "error"), ((2, 10), "off")], "expandable_segments:True"),
    Switch("use_on_oom pools are asked", ask_use_on_oom,
           [(OLD, NO_OPTION), ((2, 8), "after all releases"), ((2, 11), "before any release")]),
    Switch("no_split pools", ask_no_split, [(OLD, NO_OPTION), ((2, 10), "option")]),
    Switch("release_available", ask_release_available, [(OLD, ASSERTS), ((2, 5), "skips expandable blocks")],
           "expandable_segments:True,max_split_size_mb:50"),
    Switch("collection is on", ask_collection,
           [(OLD, "whenever a fraction was set"), ((2, 10), "below a fraction of 1")],
           "garbage_collection_threshold:0.002"),
    Switch("collection beside expandable blocks", ask_collection_expandable,
           [(OLD, ASSERTS), ((2, 5), "skips expandable blocks")],
           "expandable_segments:True,garbage_collection_threshold:0.2"),
    Switch("limit, of the fraction", ask_limit, [(OLD, "floor"), ((2, 13), "round")]),
    Switch("throw_on_cudamalloc_oom", ask_rejection, [(OLD, NO_OPTION), ((2, 12), "option")],
           "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.1"),
    Switch("expandable range", ask_reserve, [(OLD, "9/8 of the card")], "expandable_segments:True"),
    Switch("expandable_segments_reserve", ask_reserve, [(OLD, NO_OPTION), ((2, 15), "option")],
           "expandable_segments:True,expandable_segments_reserve:0.5"),
    Switch("segment_free is written", ask_order_of_release, [(OLD, "after cudaFree"), ((2, 2), "before cudaFree")]),
    Switch("frees without history", ask_frees_without_history, [(OLD, "written")]),
    Switch("checkpoints of a pool", ask_forced_addresses, [(OLD, "restored in place")]),
)


def record():
    from drive import record_history
    record_history(1000)


def answer(switch):
    """In a process under the torch that is asked."""
    import torch
    from drive import Card
    card = Card()
    torch.cuda.init()
    record()
    try:
        return switch.ask(card)
    except RuntimeError as error:
        return "torch: " + str(error).splitlines()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--release", action="append", help="may be repeated; default: all")
    parser.add_argument("--only", default="", help="switches whose title contains this")
    parser.add_argument("--ask", type=int, help="one switch, of the torch that runs this")
    arguments = parser.parse_args()
    if arguments.ask is not None:
        print(json.dumps(answer(SWITCHES[arguments.ask])))
        return
    import oracle
    names = arguments.release or oracle.RELEASES
    asked = [number for number, switch in enumerate(SWITCHES) if arguments.only in switch.title]
    rows, unexpected = {number: [] for number in asked}, 0
    for name in names:
        release = oracle.Release(name, arguments.folder.resolve())
        for number in asked:
            done = release.run("switches.py", SWITCHES[number].conf, "--ask", str(number))
            found = NO_OPTION if "Unrecognized" in done.stderr else json.loads(last_line(done.stdout, '""'))
            found = found or "ended: " + last_line(done.stderr, "?")
            expected = SWITCHES[number].expected(oracle.version_of(name))
            unexpected += found != expected
            rows[number].append(found if found == expected else f"**{found}** (expected: {expected})")
            print(f"{name} {SWITCHES[number].title}: {rows[number][-1]}", file=sys.stderr, flush=True)
    print("| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for number in asked:
        print(f"| {SWITCHES[number].title} | " + " | ".join(rows[number]) + " |")
    sys.exit(1 if unexpected else 0)


def last_line(text, default):
    return (text.strip() or default).splitlines()[-1]


if __name__ == "__main__":
    main()
