"""What if and recommend: an assumed machine is judged by the same check."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envaudit.advise import Recommendation, WhatIf, assume, assumption, recommend, what_if
from envaudit.constraint import in_range, release
from envaudit.errors import UsageError
from envaudit.matrix import Matrices
from envaudit.model import Absent, Snapshot, Unknown
from envaudit.snapshot import load

MATRICES = Matrices()
H100 = "NVIDIA H100 80GB HBM3"


def snapshot(**facts: Any) -> Snapshot:
    named = {name.replace("__", "."): value for name, value in facts.items()}
    return load(json.dumps(named).encode(), "machine")


def machine(
    gpu: str,
    driver: str,
    python: str = "3.11.4",
    glibc: str = "2.35",
    arch: str = "x86_64",
    **more: Any,
) -> Snapshot:
    return snapshot(
        gpu__0__name=gpu,
        driver__version=driver,
        python__version=python,
        os__libc__version=glibc,
        os__arch=arch,
        os__id="ubuntu",
        **more,
    )


def changed(before: Snapshot, **changes: str) -> WhatIf:
    assumptions = [
        assumption(name.replace("__", "."), value, MATRICES) for name, value in changes.items()
    ]
    return what_if(before, assumptions, MATRICES)


def causes(findings: Any) -> set[str]:
    return {finding.cause for finding in findings if finding.severity == "error"}


class TestWhatIf:
    def test_a_newer_torch_on_an_old_driver_would_break(self) -> None:
        said = changed(
            machine(H100, "535.104.05", torch__version="2.4.1+cu121"), torch="2.15.0+cu130"
        )
        assert (said.before.verdict, said.after.verdict) == ("pass", "fail")
        assert causes(said.new) == {"driver-too-old"}

    def test_a_driver_upgrade_resolves_it(self) -> None:
        said = changed(
            machine(H100, "535.104.05", torch__version="2.15.0+cu130"), driver="580.95.05"
        )
        assert (said.before.verdict, said.after.verdict) == ("fail", "pass")
        assert causes(said.resolved) == {"driver-too-old"}

    def test_another_gpu_is_judged_with_the_build_that_is_there(self) -> None:
        said = changed(
            machine(H100, "580.95.05", torch__version="2.6.0+cu124"), gpu="NVIDIA GeForce RTX 5090"
        )
        assert causes(said.new) == {"gpu-arch-too-new-for-build"}

    def test_what_is_wrong_either_way_stands(self) -> None:
        said = changed(
            machine(H100, "470.256.02", torch__version="2.15.0+cu130"), kernel="6.8.0-45"
        )
        assert "driver-too-old" in causes(said.standing)
        assert not causes(said.new)

    def test_a_cpu_build_has_no_cuda(self) -> None:
        seen = machine(
            H100, "580.95.05", torch__version="2.14.1+cu130", torch__cuda__version="13.0"
        )
        after = changed(seen, torch="2.14.1+cpu").after.snapshot
        assert isinstance(after.ask("torch.cuda.version"), Absent)

    def test_what_hangs_on_it_is_unknown_and_not_what_it_was(self) -> None:
        seen = machine(H100, "580.95.05", torch__version="2.14.1+cu130", cudnn__version="9.24.0")
        after = assume(seen, [assumption("torch", "2.4.1", MATRICES)])
        answer = after.ask("cudnn.version")
        assert isinstance(answer, Unknown)
        assert "torch" in answer.reason

    @pytest.mark.parametrize(
        ("name", "fact"),
        [
            ("driver", "driver.version"),
            ("PyTorch", "torch.version"),
            ("kernel", "kernel.release"),
            ("Flash_Attn", "dist.flash-attn.version"),
            ("os.libc.version", "os.libc.version"),
        ],
    )
    def test_a_name_is_a_component_a_fact_or_a_distribution(self, name: str, fact: str) -> None:
        after = assume(snapshot(os__arch="x86_64"), [assumption(name, "1.2.3", MATRICES)])
        assert after.facts[fact].value == "1.2.3"
        assert after.facts[fact].source == "assumed"

    def test_another_python_needs_a_wheel_of_the_torch_that_is_there(self) -> None:
        said = changed(machine(H100, "580.95.05", torch__version="2.4.1+cu121"), python="3.14.0")
        assert causes(said.new) == {"python-version-no-wheel"}

    def test_what_no_rule_looks_at_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no rule looks at it") as refused:
            assumption("cuda", "12.4", MATRICES)
        assert "cuda-toolkit" in refused.value.hint

    def test_every_gpu_is_exchanged(self) -> None:
        seen = snapshot(gpu__0__name="a", gpu__1__name="b", gpu__0__uuid="GPU-1")
        after = assume(seen, [assumption("gpu", H100, MATRICES)])
        assert after.facts["gpu.0.name"].value == after.facts["gpu.1.name"].value == H100
        assert "gpu.0.uuid" not in after.facts

    @pytest.mark.parametrize("name", ["driver.versoin", "gpu.*.name", "cuda.toolkits", ""])
    def test_what_cannot_be_assumed_is_refused(self, name: str) -> None:
        with pytest.raises(UsageError):
            assumption(name, "1", MATRICES)


# -- recommend ----------------------------------------------------------------------------------

# One machine a line: GPU, compute capability, driver, Python, glibc, architecture, and the newest
# build that its sources allow; None where no build of the matrices does.
MACHINES = [
    ("Tesla K80", "3.7", "470.256.02", "3.10.12", "2.31", "x86_64", "2.7.1+cu118"),
    ("Tesla K40c", "3.5", "470.256.02", "3.9.18", "2.31", "x86_64", None),
    ("NVIDIA GeForce GTX 980", "5.2", "535.309.01", "3.12.3", "2.39", "x86_64", "2.14.1+cu126"),
    ("NVIDIA GeForce GTX 1080 Ti", "6.1", "550.54.14", "3.11.4", "2.35", "x86_64", "2.14.1+cu126"),
    ("Tesla P100-PCIE-16GB", "6.0", "580.95.05", "3.13.1", "2.41", "x86_64", "2.14.1+cu126"),
    ("Tesla V100-SXM2-32GB", "7.0", "470.82.01", "3.8.10", "2.31", "x86_64", "2.4.1+cu118"),
    ("Tesla V100-SXM2-32GB", "7.0", "595.58.03", "3.11.4", "2.35", "x86_64", "2.14.1+cu126"),
    ("Tesla T4", "7.5", "418.226.00", "3.8.10", "2.27", "x86_64", None),
    ("Tesla T4", "7.5", "450.248.02", "3.8.10", "2.27", "x86_64", "2.4.1+cu118"),
    ("NVIDIA GeForce RTX 2080 Ti", "7.5", "580.95.05", "3.14.0", "2.41", "x86_64", "2.15.0+cu132"),
    ("NVIDIA A100-SXM4-80GB", "8.0", "525.147.05", "3.10.12", "2.28", "x86_64", "2.14.1+cu126"),
    ("NVIDIA A100-SXM4-80GB", "8.0", "525.147.05", "3.10.12", "2.17", "x86_64", "2.6.0+cu124"),
    ("NVIDIA GeForce RTX 3090", "8.6", "570.124.04", "3.9.18", "2.35", "x86_64", "2.8.0+cu129"),
    ("NVIDIA GeForce RTX 4090", "8.9", "535.104.05", "3.12.3", "2.39", "x86_64", "2.14.1+cu126"),
    (H100, "9.0", "535.104.05", "3.11.4", "2.35", "x86_64", "2.14.1+cu126"),
    (H100, "9.0", "580.95.05", "3.10.12", "2.35", "x86_64", "2.14.1+cu132"),
    ("NVIDIA GH200 480GB", "9.0", "580.95.05", "3.12.3", "2.39", "aarch64", "2.15.0+cu132"),
    ("NVIDIA B200", "10.0", "570.133.20", "3.12.3", "2.39", "x86_64", "2.11.0+cu128"),
    ("NVIDIA GB200", "10.0", "580.95.05", "3.12.3", "2.39", "aarch64", "2.15.0+cu132"),
    ("NVIDIA GeForce RTX 5090", "12.0", "615.36", "3.14.0", "2.41", "x86_64", "2.15.0+cu132"),
]


@pytest.mark.parametrize(("gpu", "cc", "driver", "python", "glibc", "arch", "newest"), MACHINES)
def test_the_newest_build_that_fits_is_recommended(
    gpu: str, cc: str, driver: str, python: str, glibc: str, arch: str, newest: str | None
) -> None:
    said = recommend(machine(gpu, driver, python, glibc, arch), "torch", MATRICES)
    assert (said.candidates[0].version if said.candidates else None) == newest
    for candidate in said.candidates:
        holds_for(candidate.version, cc, python, glibc, arch)


def holds_for(version: str, cc: str, python: str, glibc: str, arch: str) -> None:
    """Read the build's own row, without a rule: it has code for the card, and a wheel."""
    full, tag = version.split("+")
    minor = ".".join(full.split(".")[:2])
    builds = MATRICES.catalogue("torch-builds").rows
    row = next(each for each in builds if (each["torch"], each["tag"]) == (minor, tag))
    assert in_range(python, row["python"])
    assert release(glibc) >= release(row["glibc_min"])
    column = "arch_list_linux_aarch64" if arch == "aarch64" else "arch_list_linux_x86_64"
    major, _, small = cc.partition(".")
    native = {
        f"sm_{major}{each}" for each in range(int(small) + 1)
    }  # code of a lower minor runs on a higher one of the same major
    ptx = [int(each.removeprefix("compute_")) for each in row[column] if "compute_" in each]
    assert native & set(row[column]) or any(each <= int(major) * 10 + int(small) for each in ptx)


def advised(gpu: str, driver: str, **more: Any) -> Recommendation:
    return recommend(machine(gpu, driver, **more), "torch", MATRICES)


class TestRecommend:
    def test_what_the_next_driver_would_allow_is_told(self) -> None:
        unlock = advised(H100, "535.104.05").unlock
        assert unlock is not None
        assert unlock[0] == "580"
        assert release(unlock[1].version) > release("2.14.1")

    def test_a_driver_unlocks_nothing_where_the_card_is_too_old(self) -> None:
        assert advised("Tesla K80", "470.256.02").unlock is None

    def test_the_command_installs_that_build(self) -> None:
        best = advised(H100, "535.104.05").candidates[0]
        assert best.commands[0][0] == "pip"
        assert best.commands[0][1].startswith("pip install torch==2.14.1 --index-url https://")
        assert best.commands[0][1].endswith("/cu126")

    def test_every_gpu_counts(self) -> None:
        seen = machine(H100, "580.95.05", gpu__1__name="Tesla P100-PCIE-16GB")
        for candidate in recommend(seen, "torch", MATRICES).candidates:
            holds_for(candidate.version, "9.0", "3.11.4", "2.35", "x86_64")
            holds_for(candidate.version, "6.0", "3.11.4", "2.35", "x86_64")

    def test_what_is_not_known_of_the_machine_is_told_with_the_build(self) -> None:
        said = recommend(
            snapshot(gpu__0__name=H100, driver__version="580.95.05", os__arch="x86_64"),
            "torch",
            MATRICES,
        )
        assert said.candidates[0].verdict == "unknown"
        missing = " ".join(text for f in said.candidates[0].because for text in f.missing)
        assert "python.version" in missing

    def test_what_is_installed_with_torch_moves_with_it(self) -> None:
        seen = machine(
            "NVIDIA GeForce RTX 5090",
            "580.95.05",
            torch__version="2.5.1+cu121",
            dist__torchvision__version="0.20.1",
        )
        best = recommend(seen, "torch", MATRICES).candidates[0]
        assert release(best.version) > release("2.10")
        assert " torchvision " in best.commands[0][1]
        assert "torchaudio" not in best.commands[0][1]

    def test_what_is_wrong_with_any_build_is_no_reason_against_one(self) -> None:
        seen = machine(H100, "535.104.05", smi__status="NVIDIA-SMI has failed because ...")
        assert recommend(seen, "torch", MATRICES).candidates

    def test_a_component_without_builds_is_refused(self) -> None:
        with pytest.raises(UsageError, match="recommend driver"):
            recommend(snapshot(os__arch="x86_64"), "driver", MATRICES)
