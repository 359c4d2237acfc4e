"""The entry point of the command `envaudit` and of ``python -m envaudit``."""

import contextlib
import gc
import os
import sys

# A command lives for a fraction of a second: looking for garbage while modules are imported
# frees nothing and costs a twentieth of it.
gc.disable()

from envaudit.cli import run  # noqa: E402


def main() -> None:
    """Run the command line of this process and end it."""
    # A descriptor that was closed before we began gives no stream at all.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    code = run(sys.argv[1:])
    with contextlib.suppress(OSError, ValueError):  # a reader that went away
        sys.stdout.flush()
        sys.stderr.flush()
    # Everything is written and synced: taking the interpreter apart would only cost time.
    os._exit(code)


if __name__ == "__main__":
    main()
