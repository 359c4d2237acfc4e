"""Time whole commands side by side in one run, as ratios to a bare interpreter start.

Machines are noisy and drift, so nothing here is a test and no absolute time is a limit: every
command is run in turn with the bare start, A B C A B C ..., and the medians are divided.

    python benchmarks/bench.py [--quick] [--torch PYTHON] [--rounds N]

With --torch PYTHON (an interpreter that has torch) a snapshot of that environment is compared
with torch's own `python -m torch.utils.collect_env`, time and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

# What is installed runs from compiled files; a checkout that may not write them would measure the
# compiler. The target is given by --python alone.
UNWANTED = ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "CONDA_PREFIX")

HERE = Path(__file__).resolve().parent.parent
REPORT = Path(__file__).resolve().parent / "report-400.txt"


@dataclass
class Command:
    """One line of the table."""

    name: str
    argv: list[str]
    limit: float | None = None
    """Wanted: at most this many bare interpreter starts."""
    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def run(self, env: dict[str, str]) -> None:
        """Run it once, by the operating system's own accounting of the finished process."""
        started = time.perf_counter()
        process = subprocess.Popen(
            self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=HERE
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds.append(time.perf_counter() - started)
        self.memory.append(usage.ru_maxrss)
        if process.returncode not in (0, 1, 2, 3):
            sys.exit(f"{self.name}: exit status {process.returncode}")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three rounds: does it run at all")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    args = parser.parse_args()
    rounds = 3 if args.quick else args.rounds
    env = {k: v for k, v in os.environ.items() if k not in UNWANTED}
    with tempfile.TemporaryDirectory() as folder:
        tool = [str(Path(sys.executable).parent / "envaudit")]
        old, new = Path(folder, "old.json"), Path(folder, "new.json")
        for path in (old, new):
            subprocess.run(
                [*tool, "snapshot", "-q", "-o", str(path), "--python", sys.executable],
                check=True,
                env=env,
                cwd=HERE,
            )
        data = json.loads(new.read_text())
        data["facts"]["driver.version"] = {"value": "580.95.05", "source": "made up"}
        new.write_text(json.dumps(data))
        look = [*tool, "snapshot", "-q", "-o", os.devnull, "--python"]
        diff = ["diff", str(old), str(new)]
        bare = Command("python -c pass", [sys.executable, "-c", "pass"])
        commands = [
            bare,
            Command("envaudit --help", [*tool, "--help"], 8),
            Command("envaudit check FILE --format json", [*tool, "check", str(new), *JSON], 10),
            Command("envaudit check FILE", [*tool, "check", str(new)], 14),
            Command("envaudit check REPORT of 400 lines", [*tool, "check", str(REPORT)], 14),
            Command("envaudit diff A B --format json", [*tool, *diff, *JSON], 10),
            Command("envaudit diff A B", [*tool, *diff], 14),
            Command("envaudit snapshot, no torch", [*look, sys.executable], 15),
        ]
        pair = []
        if args.torch:
            pair = [
                Command("envaudit snapshot, torch in the target", [*look, args.torch]),
                Command("torch collect_env", [args.torch, "-m", "torch.utils.collect_env"]),
            ]
        for command in [*commands, *pair]:
            command.run(env)  # warm the caches
            command.seconds.clear()
            command.memory.clear()
        for _ in range(rounds):
            for command in [*commands, *pair]:
                command.run(env)
    start = statistics.median(bare.seconds)
    print(f"{rounds} rounds, medians; bare interpreter start {start * 1000:.1f} ms")
    print(f"{'command':<42}{'ms':>8}{'starts':>8}{'wanted':>8}{'MiB':>7}")
    for command in [*commands, *pair]:
        median = statistics.median(command.seconds)
        wanted = f"<= {command.limit:.0f}" if command.limit else ""
        memory = statistics.median(command.memory) / 1024
        times = f"{median * 1000:>8.1f}{median / start:>8.1f}"
        print(f"{command.name:<42}{times}{wanted:>8}{memory:>7.0f}")
    if pair:
        ours, theirs = pair
        slower = statistics.median(b / a for a, b in zip(ours.seconds, theirs.seconds, strict=True))
        larger = statistics.median(theirs.memory) / statistics.median(ours.memory)
        print(f"torch collect_env: {slower:.1f} times as long as the snapshot (wanted >= 8)")
        print(f"torch collect_env: {larger:.1f} times the memory (wanted >= 10)")


JSON = ["--format", "json"]

if __name__ == "__main__":
    main()
