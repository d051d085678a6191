"""What a recording says against what the program asked: for oracle.py and tests/fidelity/oracle_traces_test.py.

Two comparisons: `trace_difference` holds the trace of a device against the request log of the same run
(request_log.py), whether or not anything can be inferred from the trace; `unread` says what `oomscope verify` did not
make of the recording alone.
"""
# num_sync_all_streams counts waits that no trace shows: docs/fidelity.md.
NOT_IN_A_TRACE = {"num_sync_all_streams"}
DRIVER_EVENTS = {"allocate": "segment_alloc", "release": "segment_free", "map": "segment_map",
                 "unmap": "segment_unmap"}
OOM = ("oom", None, None, None)
PENDING = ("active_pending_free", "active_awaiting_free")


def requested_events(log, device):
    """(action, address, size, stream) of all that a trace must hold but for completions, which no request makes.

    `log`: lines of a request log. None is what it does not tell: all of an oom entry, the stream of a driver call.
    """
    events, device_of, asked, placed = [], {}, None, {}
    for words in map(str.split, log):
        if words[0] == "malloc":
            asked, stream, size = words[1], int(words[3]), int(words[4])
            device_of[asked] = int(words[2])
        elif words[0] == "at":
            placed[asked] = (int(words[1]), size, stream)
            if device_of[asked] == device:
                events.append(("alloc", *placed[asked]))
        elif words[0] == "oom" and device_of[asked] == device:
            events.append(OOM)
        elif words[0] == "free" and device_of[words[1]] == device:
            events.append(("free_requested", *placed[words[1]]))
        elif words[0] == "call" and int(words[1]) == device and words[2] in DRIVER_EVENTS:
            events.append((DRIVER_EVENTS[words[2]], int(words[3]), int(words[4]), None))
    return merged(events)


def traced_events(trace):
    """The same of the trace itself."""
    events = []
    for event in trace:
        action, stream = event["action"], event["stream"]
        if action == "oom":
            events.append(OOM)
        elif action in ("alloc", "free_requested"):
            events.append((action, event["addr"], event["size"], stream))
        elif action in DRIVER_EVENTS.values():
            events.append((action, event["addr"], event["size"], None))
    return merged(events)


def merged(events):
    """A range is mapped page by page, and recorded as one."""
    result = []
    for event in events:
        action, address, size, _ = event
        if result and action in ("segment_map", "segment_unmap") and result[-1][0] == action and \
                result[-1][1] + result[-1][2] == address:
            result[-1] = (action, result[-1][1], result[-1][2] + size, None)
        else:
            result.append(event)
    return result


def completion_difference(trace, segments, whole):
    """Each completion is of a block that was freed before; those without one are pending at the dump. "" if so."""
    waiting = {}
    for index, event in enumerate(trace):
        if event["action"] == "free_requested":
            waiting[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            size = waiting.pop(event["addr"], None)
            if size != event["size"] and (whole or size is not None):
                return f"event {index} completes {event['size']} bytes at {event['addr']:#x} that were not freed there"
    pending, waits = set(), set(waiting)
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] in PENDING:
                pending.add(address)
            address += block["size"]
    if pending != waits and (whole or not waits <= pending):
        return f"at the end {len(pending)} blocks are pending, in the trace {len(waits)}"
    return ""


def trace_difference(snapshot, log, device, whole=True):
    """The first difference between a device's trace and the request log, "" without one.

    `whole`: the history starts with the process; else only the log's last events are compared.
    """
    trace = snapshot["device_traces"][device]
    traced, wanted = traced_events(trace), requested_events(log, device)
    if not whole:
        wanted = wanted[len(wanted) - min(len(traced), len(wanted)):]
    for index, (found, expected) in enumerate(zip(traced, wanted)):
        if found != expected:
            return f"the trace has {text_of(found)}, asked was {text_of(expected)} (event {index} but for completions)"
    if len(traced) != len(wanted):
        return f"the trace has {len(traced)} events but for completions, asked were {len(wanted)}"
    segments = [segment for segment in snapshot["segments"] if segment["device"] == device]
    return completion_difference(trace, segments, whole)


def text_of(event):
    action, address, size, stream = event
    if address is None:
        return action
    return f"{action} of {size} bytes at {address:#x}" + ("" if stream is None else f" on stream {stream}")


def unread(result):
    """What an answer of `oomscope verify --json` says is not equal, "" if all is."""
    if result.get("error"):
        return str(result["error"])
    if result["first_difference"]:
        return result["first_difference"]["what"]
    if result["alloc_total"] == 0:
        return "nothing was compared"
    if result["alloc_exact"] != result["alloc_total"]:
        return "not all allocations are equal"
    if result["driver_events_exact"] != result["driver_events_total"]:
        return "not all driver events are equal"
    if result["final_state_equal"] is not True:
        return "the final state differs"
    differing = sorted(set(result["stats_differing"]) - NOT_IN_A_TRACE)
    return f"statistics differ: {', '.join(differing)}" if differing else ""
