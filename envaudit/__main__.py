"""The entry point of the command `envaudit` and of ``python -m envaudit``."""

import gc
import os
import signal
import sys
from types import FrameType

# A command lives for a fraction of a second: looking for garbage while modules are imported
# frees nothing and costs a twentieth of it.
gc.disable()


def _told_to_end(number: int, frame: FrameType | None) -> None:
    # Unwinds the command once, so that a look takes what it started down with it.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main() -> None:
    """Run the command line of this process and end it."""
    # A descriptor that was closed before we began gives no stream at all.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    try:
        for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _told_to_end)
        from envaudit.cli import run

        code = run(sys.argv[1:])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:  # while modules were imported
        code = 130
    except MemoryError:
        os.write(2, b"envaudit: out of memory\n")
        code = 70
    # Everything is written and synced: taking the interpreter apart would only cost time.
    os._exit(code)


if __name__ == "__main__":
    main()
