"""Any text may be pasted: mutated reports end in an answer, soon, whatever was done to them.

The reports of `tests/reports` are cut, spliced, repeated and re-encoded. `ENVAUDIT_FUZZ_INPUTS`
sets their number, `ENVAUDIT_FUZZ_SEED` the seed, `ENVAUDIT_FUZZ_CORPUS` a further folder of texts.
"""

from __future__ import annotations

import os
import random
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from envaudit import inputs
from envaudit.check import check
from envaudit.errors import InputError
from envaudit.matrix import Matrices

TESTS = Path(__file__).resolve().parent.parent
INPUTS = int(os.environ.get("ENVAUDIT_FUZZ_INPUTS", "200000"))
SEED = int(os.environ.get("ENVAUDIT_FUZZ_SEED", "20261201"))
JUDGED_EVERY = 50
"""A check of every text would take most of an hour; the readers are what meets the text."""
LONGEST_S = 2.0
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "latin-1", "cp1252", "utf-8-sig", "utf-32", "cp437")


def corpus() -> list[str]:
    folders = [TESTS / "reports", TESTS / "texts"]
    more = os.environ.get("ENVAUDIT_FUZZ_CORPUS")
    folders += [Path(more)] if more else []
    return [
        path.read_text("utf-8", "replace")
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".txt", ".log", ".xml") and path.stat().st_size < 60_000
    ]


def mutated(texts: list[str], dice: random.Random) -> bytes:
    """A report that somebody, or some tool, mangled on the way."""
    text = dice.choice(texts)
    for _ in range(dice.randint(1, 4)):
        lines = text.split("\n")
        at, to = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
        match dice.randrange(12):
            case 0:
                text = text[:at]
            case 1:
                text = text[at:]
            case 2:
                text = text[:at] + text[to:]
            case 3:
                other = dice.choice(texts)
                text = text[:at] + other[dice.randrange(len(other) + 1) :]
            case 4:
                text += text[at : at + 2000] * dice.randint(1, 20)
            case 5:
                dice.shuffle(lines)
                text = "\n".join(lines)
            case 6:
                text = "\n".join(dice.choice(("> ", "    ", "$ ", "| ", ">>> ")) + x for x in lines)
            case 7:
                text = text.replace(
                    dice.choice(" \n:=|."), dice.choice(("", " ", "\t", "\r", "\0"))
                )
            case 8:
                odd = "".join(
                    chr(dice.choice((0, 27, 0xA0, 0x202E, 0xD7FF, 0x1F600))) for _ in "ab"
                )
                text = text[:at] + odd + text[at:]
            case 9:
                number = str(dice.choice((0, -1, 10**30, "9" * 400)))
                text = text[:at] + number + text[at:]
            case 10:
                text = text.swapcase() if dice.random() < 0.5 else text.replace("\n", "\r\n")
            case _:
                text = text[:at] + text[at:to] * 3 + text[to:]
        text = text[:200_000]
    data = text.encode(dice.choice(ENCODINGS), "replace")
    if dice.random() < 0.2 and data:
        spoiled = bytearray(data)
        for _ in range(dice.randint(1, 8)):
            spoiled[dice.randrange(len(spoiled))] = dice.randrange(256)
        data = bytes(spoiled)
    return data


def run(seed: int, count: int) -> tuple[int, float, list[str]]:
    """Read `count` texts; how many were judged, the longest seconds, and what went wrong."""
    matrices, texts, dice = Matrices(), corpus(), random.Random(seed)
    judged, longest, wrong = 0, 0.0, []
    for number in range(count):
        data = mutated(texts, dice)
        began = time.process_time()
        try:
            seen = inputs.understand(data, "report", matrices)
            if number % JUDGED_EVERY == 0:
                check(seen, matrices)
                judged += 1
        except InputError:
            pass
        except BaseException:  # noqa: BLE001 - whatever it is, it is a fault
            wrong.append(f"seed {seed}, text {number}: {data[:300]!r}\n{traceback.format_exc()}")
            if len(wrong) > 3:
                break
        longest = max(longest, time.process_time() - began)
    return judged, longest, wrong


@pytest.mark.real
@pytest.mark.timeout(3600)
def test_no_mutated_report_ends_in_a_fault_or_takes_long() -> None:
    workers = os.cpu_count() or 1
    share = -(-INPUTS // workers)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        done = list(pool.map(run, range(SEED, SEED + workers), [share] * workers))
    wrong = [text for _, _, texts in done for text in texts]
    assert not wrong, "\n\n".join(wrong[:3])
    assert sum(judged for judged, _, _ in done) > INPUTS / JUDGED_EVERY / 4
    assert max(longest for _, longest, _ in done) < LONGEST_S
