"""envaudit's own command line on a recorded machine: run_recorded.py FOLDER ARG..."""

from __future__ import annotations

import sys

from envaudit import cli
from envaudit.host import Host

if __name__ == "__main__":
    cli._host_override.append(Host.from_recording(sys.argv[1]))
    cli.main(sys.argv[2:])
