"""What tracemalloc sees: objects of Python, and none of the memory that is mapped beside them, as tensors are.

    python3 examples/claims/what_tracemalloc_sees.py
"""
import mmap
import tracemalloc

MIB = 1 << 20


def main():
    tracemalloc.start()
    beside = mmap.mmap(-1, 256 * MIB)  # as a tensor's storage, a worker's batch or pinned memory
    beside.write(b"x" * (256 * MIB))
    print(f"256 MiB mapped and written: tracemalloc sees {tracemalloc.get_traced_memory()[0] // MIB} MiB")
    inside = bytearray(64 * MIB)
    print(f"64 MiB of a bytearray besides: tracemalloc sees {tracemalloc.get_traced_memory()[0] // MIB} MiB")
    del inside


main()
