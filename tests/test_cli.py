"""The command line as a user meets it: commands, exit codes, errors in one or two lines."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import envaudit
from envaudit import cli
from tests.test_isolate import alive

HERE = Path(__file__).parent.parent
TOO_OLD = {"driver.version": "470.256.02", "torch.version": "2.14.1+cu130"}
FINE = {"driver.version": "580.95.05", "torch.version": "2.14.1+cu130"}


class Run:
    """What a command line printed and how it ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def envaudit_command(*args: str | Path, stdin: str = "", **env: str) -> Run:
    merged = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "VIRTUAL_ENV")}
    merged.update({"PYTHONIOENCODING": "utf-8", **env})
    return Run(
        subprocess.run(
            [sys.executable, "-m", "envaudit", *map(str, args)],
            capture_output=True,
            text=True,
            input=stdin,
            env=merged,
            cwd=HERE,
            timeout=60,
            check=False,
        )
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "old.json").write_text(json.dumps(FINE))
    (tmp_path / "new.json").write_text(json.dumps({**FINE, "driver.version": "470.256.02"}))
    return tmp_path


def in_process(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str, str]:
    code = cli.run([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return code, out, err


# -- judging files --------------------------------------------------------------------------------


def test_a_flat_file_is_judged(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_process(capsys, "check", files / "old.json")[0] == 0
    code, out, err = in_process(capsys, "check", files / "new.json", "--format", "json")
    assert (code, err) == (2, "")
    report = json.loads(out)
    assert report["schema"] == "envaudit.report/1"
    assert report["verdict"] == "fail"
    (finding,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert finding["cause"] == "driver-too-old"
    assert {"fact": "driver.version", "value": "470.256.02", "source": "new.json"} in (
        finding["evidence"]
    )
    assert finding["fix"]
    assert all(
        set(fix) == {"text", "command", "needs_root", "needs_reboot"} for fix in finding["fix"]
    )
    assert finding["sources"][0]["url"].startswith("https://")


def test_text_says_verdict_evidence_why_fix_and_source(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = in_process(capsys, "check", files / "new.json")
    assert out.startswith("FAIL  1 root cause")
    for words in ("470.256.02", "  580  ", "why: ", "fix: ", "source: ", "The stack"):
        assert words in out
    assert "\x1b[" not in out


def test_all_shows_what_passed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = in_process(capsys, "check", files / "old.json", "--all", "--format", "json")
    verdicts = {f["verdict"] for f in json.loads(out)["findings"]}
    assert {"pass", "not_applicable"} <= verdicts
    _, out, _ = in_process(capsys, "check", files / "old.json", "--format", "json")
    assert {f["severity"] for f in json.loads(out)["findings"]} <= {"note"}


def test_quiet_says_the_verdict_and_what_failed(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = in_process(capsys, "check", "-q", files / "old.json")
    assert out == "PASS  nothing found that does not fit together\n"


def test_standard_input_and_several_files(files: Path) -> None:
    assert envaudit_command("check", "-", stdin=json.dumps(TOO_OLD)).code == 2
    part = files / "driver.json"
    part.write_text('{"driver.version": "470.10"}')
    rest = files / "torch.json"
    rest.write_text('{"torch.version": "2.14.1+cu130"}')
    assert envaudit_command("check", part, rest).code == 2


def test_a_pasted_nvidia_smi_table_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    table = (HERE / "tests" / "texts" / "nvidia-smi-h100.txt").read_text()
    run = envaudit_command("check", "-", "--format", "json", stdin=table)
    assert run.code == 0, run.err
    run = envaudit_command("check", "-", stdin="hello, is this a report?\n")
    assert run.code == 64
    assert "neither a snapshot nor a report in which envaudit knows anything" in run.err


def test_expected_gpus(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat = files / "seven.json"
    flat.write_text('{"gpu.count": 7, "driver.version": "580.95.05"}')
    assert in_process(capsys, "check", flat, "--expect-gpus", "7")[0] == 0
    code, out, _ = in_process(capsys, "check", flat, "--expect-gpus", "8")
    assert code == 2
    assert "7 GPU(s) seen, 8 expected" in out


# -- looking --------------------------------------------------------------------------------------


def test_a_look_is_kept_found_and_compared(tmp_path: Path) -> None:
    store = tmp_path / "store"
    base = ("--store", store, "--python", sys.executable)
    first = envaudit_command("snapshot", "--label", "before", *base)
    assert first.code == 0, first.err
    assert str(store) in first.out
    second = envaudit_command("snapshot", "-q", *base)
    assert (second.code, second.out, second.err) == (0, "", "")
    listed = envaudit_command("snapshots", "--store", store)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["@1", "@2"]
    assert "before" in listed.out
    shown = envaudit_command("snapshots", "show", "before", "--store", store).json
    assert shown["schema"] == "envaudit.snapshot/1"
    assert len(shown["facts"]) >= 60
    assert all(fact["source"] for fact in shown["facts"].values())
    compared = envaudit_command("diff", "before", "@1", "--store", store, "--format", "json")
    assert compared.code == 0, compared.err
    said = compared.json
    assert said["schema"] == "envaudit.diff/1"
    assert {c["stability"] for c in said["changes"]} <= {"state"}
    now = envaudit_command("diff", "--exit-code", *base)
    assert now.code == 0, now.out
    assert envaudit_command("check", "before", "--store", store).code == 0
    removed = envaudit_command("snapshots", "prune", "--keep", "1", "--store", store)
    assert removed.code == 0, removed.err


def test_a_look_to_a_file_and_to_standard_output(tmp_path: Path) -> None:
    place = tmp_path / "look.json"
    run = envaudit_command("snapshot", "-o", place, "--python", sys.executable)
    assert run.code == 0, run.err
    assert stat.S_IMODE(place.stat().st_mode) & 0o600
    data = json.loads(place.read_text())
    assert envaudit_command("snapshot", "-o", "-", "--python", sys.executable).json["facts"]
    assert data["target"]["executable"] == sys.executable


def test_a_redacted_look_names_nobody() -> None:
    run = envaudit_command("snapshot", "--redact", "-o", "-", "--python", sys.executable)
    assert Path("/proc/sys/kernel/random/boot_id").read_text().strip() not in run.out
    assert run.json["tool"]["redacted"] is True


def test_an_image_is_looked_at_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text('ID=ubuntu\nVERSION_ID="24.04"\n')
    run = envaudit_command("snapshot", "--root", tmp_path, "-o", "-")
    assert run.code == 0, run.err
    facts = run.json["facts"]
    assert facts["os.id"]["value"] == "ubuntu"
    assert "kernel.release" not in facts
    assert "driver.module.loaded" not in facts


# -- showing --------------------------------------------------------------------------------------


def test_facts_explain_and_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = in_process(capsys, "facts", "--name", "driver.*")
    assert code == 0
    assert 'nvidia-smi "Driver Version"' in out
    code, out, _ = in_process(capsys, "explain", "driver-too-old")
    assert code == 0
    for words in (
        "cuda-driver/minimum",
        "source: ",
        "min_driver_linux of cuda-minor-compat",
        "fail:",
    ):
        assert words in out
    code, out, _ = in_process(capsys, "matrix")
    assert "gpu-products" in out
    assert "driver-module/next-boot" in out
    code, out, _ = in_process(capsys, "matrix", "show", "cuda-minor-compat")
    assert "min_driver_linux=580" in out
    code, out, _ = in_process(capsys, "matrix", "validate")
    assert code == 0
    assert out.endswith("valid\n")


def test_a_snapshot_that_was_cut_is_no_report(tmp_path: Path) -> None:
    whole = (HERE / "snapshots" / "h100x8-healthy.json").read_text()
    run = envaudit_command("check", "-", stdin=whole[:5000])
    assert run.code == 64
    assert "cut short" in run.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_process(capsys, "--version")[1] == f"envaudit {envaudit.__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = in_process(capsys, "--help")
    assert code == 0
    for name in (
        "snapshot",
        "check",
        "diff",
        "snapshots",
        "facts",
        "explain",
        "matrix",
        "whatif",
        "recommend",
    ):
        assert f"\n  {name} " in out
        assert "..." not in next(line for line in out.splitlines() if line.startswith(f"  {name} "))
        assert in_process(capsys, name, "--help")[0] == 0


# -- wrong usage, hostile input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["check", "--nonsense"], "No such option"),
        (["check", "--format", "yaml"], "--format yaml: must be one of text, json"),
        (["check", "--fail-on", "note"], "--fail-on note: must be one of error, warning"),
        (["check", "--deadline", "soon"], "'soon' is not a valid float"),
        (["check", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
        (["check", "@99"], "@99"),
        (["check", "/"], "/"),
        (["check", "--root", "/nowhere"], "--root /nowhere: no such folder"),
        (["check", "--python", "/etc/passwd"], "not an executable file"),
        (["check", "--python", "/bin/ls"], "no Python interpreter"),
        (["check", "--python", "/nowhere/python"], "/nowhere/python"),
        (["check", "--python", "no-such-python"], "no-such-python"),
        (["check", "x.json", "--python", "python3"], "for looking at a machine"),
        (["check", "--matrices", "/nowhere"], "--matrices /nowhere: no such folder"),
        (["diff", "no-such-label"], "no-such-label"),
        (["explain", "driver-to-old"], "Did you mean driver-too-old"),
        (["snapshots", "burn"], "must be one of list, show, prune"),
        (["snapshots", "prune"], "needs --keep N"),
        (["matrix", "show", "gpus"], "no such catalogue"),
        (["snapshot", "--label", "a\nb", "-o", "-"], "label"),
        (["snapshot", "-o", "/nowhere/x.json"], "/nowhere/x.json"),
    ],
)
def test_wrong_usage_is_told_in_a_line_or_two(
    args: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = [] if args[0] in ("explain", "matrix", "nonsense") else ["--store", str(tmp_path)]
    code, out, err = in_process(capsys, *args, *store)
    assert (code, out) == (64, "")
    assert words in err
    assert 1 <= len(err.splitlines()) <= 3
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 200_000,
        b'{"a.b":' * 100_000,
        b"\xff\xfe{\x00}\x00",
        b"\x80\x81\x82",
        b"null",
        b"[1, 2]",
        b'"text"',
        b"{}",
        b'{"schema": "envaudit.snapshot/2"}',
        b'{"schema": "envaudit.report/1"}',
        b'{"schema": "envaudit.snapshot/1", "facts": []}',
        b'{"driver.version": {"deep": 1}}',
        b'{"driver.version": 1e999}',
        b'{"driver.version": NaN}',
        b'{"driver.version": ' + b"9" * 10_000 + b"}",
        b'{"driver.version": "\\ud800"}',
        b"\x00" * 1000,
        b"{" + b" " * (17 << 20) + b"}",
    ],
    ids=[f"hostile{n}" for n in range(20)],
)
def test_hostile_files_end_in_one_clear_line(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(data)
    for args in (("check", path), ("diff", path, path)):
        code, out, err = in_process(capsys, *args)
        assert (code, out) == (64, ""), err
        assert str(path) in err.splitlines()[0]
        assert len(err.splitlines()) <= 2


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400) | st.text(max_size=200).map(_encode))
def test_any_bytes_end_in_a_verdict_or_one_clear_line(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "any"
    path.write_bytes(data)
    code, out, err = in_process(capsys, "check", path, "--format", "json")
    assert code in (0, 2, 64)
    if code == 64:
        assert out == ""
        assert len(err.splitlines()) <= 2
    else:
        json.loads(out)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
names = st.sampled_from(
    [
        "driver.version",
        "driver.module.version",
        "driver.libnvml.version",
        "torch.version",
        "torch.cuda.version",
        "torch.arch_list",
        "gpu.0.name",
        "gpu.0.compute_capability",
        "gpu.count",
        "cudnn.version",
        "nvswitch.count",
        "fabricmanager.version",
        "cuda.nvcc.version",
        "nvcc.host_compiler.gcc",
        "python.conflicts",
        "nvml.status",
        "pci.gpu.count",
        "driver.compat.version",
    ]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.dictionaries(names, values, min_size=1))
def test_facts_of_any_type_are_judged_without_a_crash(
    facts: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts))
    for output in ("json", "text"):
        code, _, err = in_process(capsys, "check", path, "--format", output)
        assert code in (0, 2, 64), err
    code, _, err = in_process(capsys, "diff", path, path)
    assert code in (0, 64), err


def test_a_store_that_is_a_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "store"
    place.write_text("not a folder")
    for args in (["snapshots"], ["check", "@1"], ["diff"]):
        code, out, err = in_process(capsys, *args, "--store", place)
        assert (code, out) == (64, "")
        assert str(place) in err
        assert len(err.splitlines()) <= 2


def test_a_file_without_read_permission_is_told(tmp_path: Path) -> None:
    """Run as nobody, whom permissions bind; root may read everything."""
    path = tmp_path / "secret.json"
    path.write_text(json.dumps(FINE))
    path.chmod(0)
    script = (
        "import os, sys\n"
        "if os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from envaudit.cli import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    for folder in [tmp_path, *tmp_path.parents][:4]:
        if folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import envaudit.cli, envaudit.inputs, envaudit.store\n"
            "import envaudit.check, envaudit.matrix, envaudit.snapshot\n" + script,
            "check",
            str(path),
        ],
        capture_output=True,
        text=True,
        cwd=HERE,
        timeout=60,
        check=False,
    )
    assert done.returncode == 64, done.stderr
    assert "Permission denied" in done.stderr or "permission" in done.stderr.lower()
    assert len(done.stderr.splitlines()) <= 2


# -- where the output goes ------------------------------------------------------------------------


def test_output_to_a_file_is_atomic_and_follows_links(files: Path) -> None:
    target = files / "report.json"
    target.write_text("old")
    link = files / "link.json"
    link.symlink_to(target)
    run = envaudit_command("check", files / "new.json", "--format", "json", "-o", link)
    assert (run.code, run.out) == (2, "")
    assert link.is_symlink()
    assert json.loads(target.read_text())["verdict"] == "fail"
    assert [p.name for p in files.glob(".envaudit-*")] == []


def test_output_to_a_full_disk_leaves_the_old_file(files: Path) -> None:
    run = envaudit_command("check", files / "new.json", "-o", "/dev/full")
    assert run.code == 64
    assert "No space left on device" in run.err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_odd_locales_get_plain_signs(files: Path, encoding: str) -> None:
    run = envaudit_command("check", files / "new.json", PYTHONIOENCODING=encoding, LC_ALL="C")
    assert run.code == 2, run.err
    assert run.out.isascii()


def test_colour_only_where_it_is_wanted(files: Path) -> None:
    plain = envaudit_command("check", files / "new.json")
    forced = envaudit_command("check", files / "new.json", FORCE_COLOR="1")
    refused = envaudit_command("check", files / "new.json", FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[" not in plain.out
    assert "\x1b[" in forced.out
    assert refused.out == plain.out


def test_a_reader_that_goes_away_is_no_error(files: Path) -> None:
    script = f"{sys.executable} -m envaudit facts | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=HERE, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_home_and_no_store_is_told(files: Path) -> None:
    run = envaudit_command("check", files / "old.json", HOME="", XDG_STATE_HOME="")
    assert run.code == 0, run.err


# -- what strangers ran into ----------------------------------------------------------------------


def test_options_alone_mean_check(files: Path) -> None:
    run = envaudit_command("--strict", "--expect-gpus", "8", "--python", sys.executable)
    assert run.code == 2, run.err
    assert "8 expected" in run.out


def test_facts_that_no_rule_can_judge_are_no_pass(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text('{"driver.verson": "470.10", "torch.verion": "2.14.1+cu130"}')
    code, out, _ = in_process(capsys, "check", path)
    assert code == 0
    assert out.startswith("UNKNOWN  nothing here could be judged")
    assert "driver.verson (did you mean driver.version?)" in " ".join(out.split())
    assert in_process(capsys, "check", path, "--strict")[0] == 3


def test_a_folder_that_is_no_image_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = in_process(capsys, "check", "--root", tmp_path)
    assert code == 64
    assert "no system image" in err


def test_utf_16_as_powershell_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(json.dumps(TOO_OLD).encode("utf-16"))
    assert in_process(capsys, "check", path)[0] == 2


def test_more_gpus_than_a_machine_has_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({f"gpu.{n}.name": "NVIDIA H100 80GB HBM3" for n in range(5000)}))
    code, _, err = in_process(capsys, "check", path)
    assert code == 64
    assert "5000 GPUs, more than any one machine has" in err


@pytest.mark.parametrize("deadline", ["nan", "inf", "0", "-1", "1e9"])
def test_a_deadline_that_is_none_is_refused(
    deadline: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_process(capsys, "check", "--deadline", deadline)[0] == 64


def test_own_rows_in_a_pipe_do_not_hang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules").mkdir()
    os.mkfifo(tmp_path / "rules" / "own.json")
    code, _, err = in_process(capsys, "matrix", "validate", tmp_path)
    assert code == 64
    assert "not a regular file" in err


ESCAPES = "\x1b[2J\x1b]0;title\x07\u202eevil\x00"


def test_no_file_commands_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evil.json"
    fact = {"value": "470.10" + ESCAPES, "source": "nowhere" + ESCAPES}
    flat = {
        "driver.version": "470.10" + ESCAPES,
        "torch.version": "2.14.1+cu130",
        "x." + "y": ESCAPES,
    }
    path.write_text(json.dumps(flat))
    full = tmp_path / "full.json"
    run = in_process(capsys, "snapshot", "-o", full, "-q", "--python", sys.executable)
    assert run[0] == 0
    data = json.loads(full.read_text())
    data["facts"]["driver.version"] = fact
    data["probes"][0]["gaps"] = {"os.build": ESCAPES}
    data["host"]["name"] = "host" + ESCAPES
    full.write_text(json.dumps(data))
    for args in (
        ("check", path),
        ("check", full, "-v"),
        ("diff", path, full, "-v"),
        ("facts", full),
        ("check", "/nowhere/" + ESCAPES.replace("\x00", "")),
        ("explain", ESCAPES),
    ):
        _, out, err = in_process(capsys, *args)
        assert not set(out + err) & set("\x1b\x07\x00\u202e"), args


def test_the_verdict_stands_when_the_reader_goes_away(files: Path) -> None:
    script = f"{sys.executable} -m envaudit check {files}/new.json | true; exit ${{PIPESTATUS[0]}}"
    for _ in range(3):
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            cwd=HERE,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["facts"], ["matrix"]])
def test_a_full_standard_output_is_told(args: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "envaudit", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=HERE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 64
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_look_that_is_broken_off_leaves_nothing_running(number: int, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(
        f"#!/bin/sh\ntrap '' TERM INT HUP\necho $$ >> {tmp_path}/pids\n"
        f"setsid sh -c 'echo $$ >> {tmp_path}/pids; sleep 50' &\nsleep 50; sleep 50\n"
    )
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "envaudit", "check", "--python", str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=HERE,
        text=True,
    )
    until = time.monotonic() + 10
    while time.monotonic() < until:
        time.sleep(0.05)
        if (tmp_path / "pids").exists() and len((tmp_path / "pids").read_text().split()) == 2:
            break
    process.send_signal(number)
    _, err = process.communicate(timeout=5)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number), err
    assert "Traceback" not in err
    time.sleep(0.3)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    assert not [pid for pid in pids if alive(int(pid))]


def test_what_was_not_read_of_a_report_is_told() -> None:
    table = (HERE / "tests" / "texts" / "nvidia-smi-h100.txt").read_text()
    assert "not read" not in envaudit_command("check", "-", stdin=table).out
    more = table + "\n$ my-tool --all\nsomething 2.11.0\n"
    out = " ".join(envaudit_command("check", "-", stdin=more).out.split())
    assert (
        "Part of the report was not read: 1 of 49 lines, among them what `my-tool --all` printed"
        in out
    )


def test_redaction_knows_the_account_it_runs_as() -> None:
    run = envaudit_command(
        "snapshot",
        "--redact",
        "-o",
        "-",
        "--python",
        sys.executable,
        USER="quuxalice",
        LD_LIBRARY_PATH="/scratch/quuxalice/lib:/data/quuxalice",
    )
    assert run.code == 0, run.err
    assert "/scratch/" in run.out
    assert "quuxalice" not in run.out


def test_two_looks_in_one_second_have_ids_of_their_own() -> None:
    ids = {
        envaudit_command("snapshot", "-o", "-", "--python", sys.executable).json["id"]
        for _ in range(3)
    }
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"driver.cuda.version": "12.2", "torch.version": "2.9.1+cu130"}, "driver-too-old"),
        (
            {"driver.version": "535.54.03", "gpu.0.name": "NVIDIA GeForce RTX 5090"},
            "gpu-needs-newer-driver",
        ),
        (
            {"gpu.0.name": "Tesla V100-SXM2-16GB", "torch.version": "2.9.1+cu130"},
            "gpu-arch-too-old-for-build",
        ),
        (
            {"gpu.0.name": "NVIDIA A100-SXM4-40GB", "gpu.0.remapped_rows.failed": True},
            "ecc-row-remap",
        ),
    ],
)
def test_what_cannot_work_is_no_pass(
    facts: dict[str, Any], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts))
    code, out, _ = in_process(capsys, "check", path, "--format", "json")
    assert code == 2
    assert cause in [f["cause"] for f in json.loads(out)["findings"] if "because_of" not in f]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            (
                "Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.  "
                "Reboot the system to recover this GPU\n"
            ),
            "gpu-lost",
        ),
        ("<nvidia_smi_log></nvidia_smi_log>\n", "look-incomplete"),
    ],
)
def test_a_bad_report_is_no_pass(text: str, cause: str) -> None:
    run = envaudit_command("check", "-", "--strict", "--format", "json", stdin=text)
    assert run.code in (2, 3), run.out
    assert cause in [finding["cause"] for finding in run.json["findings"]]


def test_verbose_says_where_each_value_of_the_stack_was_read() -> None:
    run = envaudit_command("check", "-v", "--python", sys.executable)
    out = " ".join(run.out.split())
    assert f"kernel.release {os.uname().release}: /proc/sys/kernel/osrelease" in out
    assert "os.libc.version " in out
    assert "driver.version absent: looked for by nvml" in out or "driver.version " in out
