"""Writes down every request that a program makes of torch's allocator, and all that came of it.

Nothing is read back from a trace: which pool a request was for, which stream was current, when a scope was opened, a
pool died, empty_cache was called or an event completed is what the program itself did. tools/replay_requests.cc
gives the same requests to the engine and compares everything. One line a request, and below it what the allocator
asked of the driver meanwhile, and the answer:

    torch VERSION                             once, at the top
    settings [CONF]                           as PYTORCH_CUDA_ALLOC_CONF takes them, also in the middle
    card DEVICE TOTAL                         bytes of its memory
    limit DEVICE BYTES                        -1: none
    malloc ID DEVICE STREAM SIZE              answered by `at ADDRESS` or `oom`
    free ID STREAM                            the stream that is current
    record_stream ID STREAM CURRENT
    complete STREAM COUNT                     the oldest events of that stream are done
    empty_cache STREAM...                     of each device the current one
    pool FIRST SECOND OPTIONS                 made; OPTIONS are 0, or a sum of 1 own segment allocator, 2 use_on_oom,
                                              4 no_split
    begin FIRST SECOND STREAM CAPTURES        a scope of the pool; STREAM -1: on every stream; CAPTURES 0 or 1
    end FIRST SECOND
    release FIRST SECOND                      one reference less
    destroy FIRST SECOND                      the MemPool object died
    call DEVICE KIND ADDRESS SIZE             KIND as in drive.CALL_KINDS
    stat DEVICE NAME VALUE                    at the end, of memory_stats()
"""
ANY_STREAM = -1


class RequestLog:
    """`card`: drive.Card. What the driver was asked stands behind the request that asked."""

    def __init__(self, path, card, devices):
        self.file = open(path, "w")
        self.card, self.told = card, [card.call_count(device) for device in range(devices)]

    def write(self, *words):
        self.file.write(" ".join(map(str, words)) + "\n")

    def calls(self):
        """Those since the last time."""
        for device, told in enumerate(self.told):
            self.told[device] = self.card.call_count(device)
            for kind, address, size in self.card.calls(device, told):
                self.write("call", device, kind, address, size)

    def end(self, stats):
        """`stats`: memory_stats of each device."""
        for device, values in enumerate(stats):
            for name, value in values.items():
                self.write("stat", device, name, value)
        self.file.close()
