"""`python -m oomscope ...` and the command `oomscope`: the program, in place of this process."""
from __future__ import annotations

import os
import sys

from ._program import find_program


def main() -> None:
    program = find_program()
    if program is None:
        sys.exit("oomscope: the program is not installed: this copy of the package carries none\n"
                 "  pip install .   in a clone builds it; or set OOMSCOPE_PROGRAM to a built one")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"oomscope: {program}: {error.strerror}\n  OOMSCOPE_PROGRAM names the program")


if __name__ == "__main__":
    main()
