"""Judging: three answers, root causes before consequences, less sure knowledge only informs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envaudit import exits
from envaudit.check import check, told, undecided
from envaudit.errors import MatrixError
from envaudit.matrix import Matrices, NoRow
from envaudit.model import Fact, ProbeRun, Report, Snapshot
from envaudit.snapshot import load

MATRICES = Matrices()


def judge(facts: dict[str, Any], **assume: Any) -> Report:
    given = {name: (value, "--expect-gpus") for name, value in assume.items()}
    return check(load(json.dumps(facts).encode(), "facts.json"), MATRICES, assume=given)


def roots(report: Report) -> list[str]:
    return [
        f.cause
        for f in report.findings
        if told(f) and f.because_of is None and f.severity != "note"
    ]


def code(report: Report, *, strict: bool = False, fail_on: Any = "error") -> int:
    return exits.of_report(report, strict=strict, fail_on=fail_on)


@pytest.mark.parametrize(
    ("facts", "verdict", "causes", "exit_code"),
    [
        pytest.param(
            {"driver.version": "470.256.02", "torch.version": "2.14.1+cu130"},
            "fail",
            ["driver-too-old"],
            2,
            id="driver 470, cu130",
        ),
        pytest.param(
            {"driver.version": "580.95.05", "torch.version": "2.14.1+cu130"},
            "pass",
            [],
            0,
            id="driver 580, cu130",
        ),
        pytest.param(
            {
                "driver.version": "570.133.20",
                "torch.version": "2.8.0+cu129",
                "gpu.0.name": "NVIDIA GeForce RTX 4090",
            },
            "pass",
            [],
            0,
            id="driver 570, cu129: minor-version compatibility",
        ),
        pytest.param(
            {"driver.version": "595.58.03", "torch.version": "2.14.1+cu130"},
            "pass",
            [],
            0,
            id="driver 595: newer than the build",
        ),
        pytest.param(
            {"torch.version": "2.13.0+cpu", "gpu.count": 1, "gpu.0.name": "NVIDIA L4"},
            "fail",
            ["cpu-only-build"],
            2,
            id="CPU-only build beside a GPU",
        ),
        pytest.param(
            {
                "gpu.0.name": "NVIDIA GeForce RTX 4090",
                "gpu.1.name": "NVIDIA GeForce GTX 1050 Ti",
                "driver.version": "570.133.20",
                "torch.version": "2.8.0+cu128",
            },
            "fail",
            ["gpu-arch-too-old-for-build"],
            2,
            id="one of two GPUs too old",
        ),
        pytest.param(
            {
                "gpu.0.name": "NVIDIA GeForce RTX 4090",
                "gpu.0.pcie.gen.current": 1,
                "gpu.0.pcie.gen.max": 4,
                "gpu.0.pstate": "P8",
                "driver.version": "580.95.05",
            },
            "pass",
            [],
            0,
            id="an idle link that downtrained",
        ),
    ],
)
def test_cases(facts: dict[str, Any], verdict: str, causes: list[str], exit_code: int) -> None:
    report = judge(facts)
    assert (report.verdict, roots(report), code(report)) == (verdict, causes, exit_code)


def test_every_gpu_is_judged() -> None:
    report = judge(
        {
            "gpu.0.name": "NVIDIA GeForce RTX 4090",
            "gpu.1.name": "NVIDIA GeForce GTX 1050 Ti",
            "torch.version": "2.8.0+cu128",
        }
    )
    failed = [f for f in report.findings if f.verdict == "fail" and f.severity == "error"]
    assert [f.subject for f in failed] == ["gpu.1"]
    assert "GTX 1050 Ti" in failed[0].title


def test_a_consequence_names_its_root_and_is_not_counted() -> None:
    report = judge(
        {
            "pci.gpu.count": 1,
            "driver.module.loaded": False,
            "driver.module.on_disk": None,
            "driver.module.kernels": ["6.8.0-45-generic"],
            "driver.libcuda.path": "/usr/lib/x86_64-linux-gnu/libcuda.so.550.120",
            "kernel.release": "6.8.0-47-generic",
            "nvml.status": "Driver Not Loaded",
        },
        **{"expected.gpu.count": 1},
    )
    assert roots(report) == ["kernel-module-missing-for-kernel"]
    because = {f.cause: f.because_of for f in report.findings if told(f) and f.because_of}
    assert because["driver-not-loaded"] == "driver-module/missing-for-kernel"


def test_an_unknown_fact_is_never_a_pass() -> None:
    report = judge({"torch.cuda.version": "13.0", "torch.version": "2.14.1+cu130"})
    assert "cuda-driver/minimum" not in [f.rule for f in report.findings if f.verdict == "pass"]
    report = judge({"driver.version": "N/A", "torch.version": "2.14.1+cu130"})
    assert report.verdict == "unknown"
    assert (code(report), code(report, strict=True)) == (0, 3)
    undecided_rules = [f for f in report.findings if undecided(f)]
    assert "cuda-driver/minimum" in [f.rule for f in undecided_rules]
    assert all(f.missing for f in undecided_rules)


def test_a_definite_failure_outweighs_what_is_unknown() -> None:
    facts = {"driver.version": "470.10", "torch.version": "2.14.1+cu130", "smi.status": "timed out"}
    report = judge(facts)
    assert report.verdict == "fail"
    assert code(report, strict=True) == 2


def test_newer_than_the_matrices_is_said() -> None:
    report = judge({"driver.version": "999.10", "torch.cuda.version": "99.1"})
    reasons = " ".join(reason for f in report.findings for reason in f.missing)
    assert "cuda_major 99 is newer than these matrices know" in reasons
    assert report.verdict == "unknown"


def test_a_general_law_covers_a_driver_newer_than_the_matrices() -> None:
    report = judge({"driver.version": "999.10", "torch.version": "2.14.1+cu130"})
    assert report.verdict == "pass"
    assert "branch 999 is newer than these matrices know" in " ".join(
        reason for f in report.findings for reason in f.missing
    )


def test_warnings_count_only_when_asked() -> None:
    report = judge({"cuda.nvcc.version": "12.0.140", "nvcc.host_compiler.gcc": "13.2.0"})
    assert report.verdict == "warn"
    assert (code(report), code(report, fail_on="warning")) == (0, 1)


def test_derived_facts_fill_gaps_and_never_override() -> None:
    report = judge({"gpu.0.name": "NVIDIA H100 80GB HBM3"})
    fact = report.snapshot.facts["gpu.0.compute_capability"]
    assert fact.value == "9.0"
    assert fact.source.startswith("derived: matrix gpu-products")
    seen = judge({"gpu.0.name": "NVIDIA H100 80GB HBM3", "gpu.0.compute_capability": "9.1"})
    assert seen.snapshot.facts["gpu.0.compute_capability"].value == "9.1"
    absent = judge({"gpu.0.name": "NVIDIA H100 80GB HBM3", "gpu.0.compute_capability": None})
    assert "gpu.0.compute_capability" not in absent.snapshot.facts


def test_the_tag_of_a_build_tells_its_cuda() -> None:
    known = judge({"torch.version": "2.14.1+cu130"}).snapshot
    assert known.facts["torch.cuda.version"].value == "13.0"
    assert known.facts["torch.arch_list"].value == [
        "sm_75",
        "sm_80",
        "sm_86",
        "sm_90",
        "sm_100",
        "sm_120",
    ]


def test_less_sure_knowledge_never_fails_anything(tmp_path: Path) -> None:
    row = {
        "id": "own/test",
        "cause": "driver-too-old",
        "layer": "driver",
        "severity": "error",
        "title": "t",
        "why": "w",
        "when": [{"fact": "driver.version", "is": "present"}],
        "require": [{"fact": "driver.version", ">=": "600"}],
        "fix": [],
        "sources": ["s"],
        "confidence": "medium",
        "examples": {"fail": [{"driver.version": "1"}], "pass": [{"driver.version": "601"}]},
    }
    own = folder_with(tmp_path, rules=[row])
    snapshot = load(b'{"driver.version": "580.95.05"}', "x")
    report = check(snapshot, Matrices(str(own)))
    finding = next(f for f in report.findings if f.rule == "own/test")
    assert (finding.verdict, finding.severity, finding.confidence) == ("fail", "note", "medium")
    assert report.verdict == "pass"


def folder_with(folder: Path, **kinds: list[dict[str, Any]]) -> Path:
    for kind, rows in kinds.items():
        (folder / kind).mkdir()
        data = {
            "schema": f"envaudit.{kind}/1",
            "name": "own",
            "about": "own rows",
            "sources": {"s": {"title": "a source", "url": None, "read": "2026-12-01"}},
            "rows": rows,
        }
        (folder / kind / "own.json").write_text(json.dumps(data))
    return folder


def test_own_rows_override_by_id(tmp_path: Path) -> None:
    shipped = next(row for row in MATRICES.rows("rules") if row["id"] == "cuda-driver/minimum")
    row = {k: v for k, v in shipped.items() if k not in ("file", "sources")}
    row |= {"severity": "warning", "sources": ["s"]}
    own = folder_with(tmp_path, rules=[row])
    snapshot = load(b'{"driver.version": "470.10", "torch.version": "2.14.1+cu130"}', "x")
    assert check(snapshot, Matrices(str(own))).verdict == "warn"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"severity": "fatal"}, "'fatal' is not one of"),
        ({"require": [{"fact": "x", "about": 3}]}, "rows/0"),
        ({"sources": ["nowhere"]}, "source 'nowhere' is not in sources"),
    ],
)
def test_own_rows_are_validated(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    shipped = next(row for row in MATRICES.rows("rules") if row["id"] == "cuda-driver/minimum")
    row = {k: v for k, v in shipped.items() if k not in ("file", "sources")}
    own = folder_with(tmp_path, rules=[{**row, "sources": ["s"], **change}])
    with pytest.raises(MatrixError) as problem:
        Matrices(str(own))
    assert words in problem.value.message
    assert "own.json" in problem.value.message


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("GeForce RTX 2080 Ti", "7.5"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("Tesla V100-SXM2-32GB", "7.0"),
        ("NVIDIA RTX A6000", "8.6"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6"),
        ("NVIDIA GeForce RTX 40...", "8.9"),
        ("NVIDIA B200", "10.0"),
    ],
)
def test_product_names_are_found(name: str, capability: str) -> None:
    table = MATRICES.catalogue("gpu-products")
    assert table.cell({"name": name}, "compute_capability").value == capability


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 9990", "AMD Instinct MI300X", "NVIDIA", ""])
def test_a_product_that_is_not_known_is_not_guessed(name: str) -> None:
    with pytest.raises(NoRow):
        MATRICES.catalogue("gpu-products").cell({"name": name}, "compute_capability")


def test_a_hung_driver_is_an_error_that_leaves_the_verdict_open() -> None:
    run = ProbeRun("nvml", "timed_out", "no answer within 9 s", ("gpu.*", "nvml.*"))
    snapshot = Snapshot("x", "2026-12-01T00:00:00Z", {"os.id": Fact("os.id", "x", "y")}, (run,))
    report = check(snapshot, MATRICES)
    assert report.verdict == "unknown"
    assert (code(report), code(report, strict=True)) == (2, 3)
    hung = next(f for f in report.findings if f.cause == "driver-probe-hung" and told(f))
    assert "no answer within 9 s" in hung.why
    assert hung.evidence
