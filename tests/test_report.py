"""A pasted report: cut into sections, read by every importer, its places kept apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit import report
from envaudit.matrix import Matrices
from envaudit.model import Fact
from envaudit.report import clean, judged_place, more_precise, sections
from tests.smi_samples import TABLE_580, TABLE_615

SIGNATURES = Matrices().signatures_for


def cut(text: str) -> list[tuple[str, str, str]]:
    return [(part.scope, part.command, part.text.strip()) for part in sections(clean(text))]


def values(text: str) -> dict[str, object]:
    facts = report.read(text, "report", SIGNATURES).facts
    return {name: fact.value for name, fact in facts.items()}


def fact(value: str) -> Fact:
    return Fact("torch.version", value, "somewhere")


class TestSections:
    @pytest.mark.parametrize(
        ("prompt", "scope"),
        [
            ("$ ", ""),
            ("host$ ", "host"),
            ("container# ", "container"),
            ("wsl$ ", "wsl"),
            ("(venv) user@box:~/work$ ", ""),
            ("(base) [user@box work]$ ", ""),
            ("root@3f2a1b0c9d8e:/workspace# ", "container"),
            ("PS C:\\Users\\user> ", "windows"),
            ("C:\\Users\\user>", "windows"),
            ("\u276f ", ""),
            ("!", ""),
            ("# ", ""),
        ],
    )
    def test_a_prompt_begins_the_output_of_its_command(self, prompt: str, scope: str) -> None:
        text = f"It is slow.\n{prompt}nvidia-smi -L\nGPU 0: ...\n"
        assert cut(text) == [
            ("", "", "It is slow."),
            (scope, "nvidia-smi -L", "GPU 0: ..."),
        ]

    @pytest.mark.parametrize(
        "line",
        [
            "# What happened",
            "$100 for a GPU",
            "| $ | price |",
            "mail me at user@example.com",
            "+-----------------+",
            "loss > 3",
            "[1]: a foot note",
        ],
    )
    def test_prose_is_no_prompt(self, line: str) -> None:
        assert cut(line) == [("", "", line.strip())]

    def test_a_command_in_a_container_ran_in_the_container(self) -> None:
        text = "$ docker exec tei env\nA=1\n$ env\nA=2\n"
        assert [(scope, said) for scope, _, said in cut(text)] == [
            ("container", "A=1"),
            ("", "A=2"),
        ]

    def test_a_heading_tells_the_place_of_what_follows(self) -> None:
        text = (
            "On the host:\nx=1\n\n**Inside the container:**\n```\nx=2\n```\n### Windows host\nx=3\n"
        )
        assert [(scope, said) for scope, _, said in cut(text)] == [
            ("host", "x=1"),
            ("container", "x=2"),
            ("windows", "x=3"),
        ]

    def test_a_fence_ends_an_output(self) -> None:
        assert cut("```console\n$ uname -r\n6.8.0\n```\nand then\n") == [
            ("", "uname -r", "6.8.0"),
            ("", "", "and then"),
        ]

    def test_an_expression_of_several_lines_is_one_command(self) -> None:
        text = ">>> for x in (1, 2):\n...     print(x)\n...\n1\n2\n"
        assert cut(text) == [("", "for x in (1, 2):\n    print(x)\n", "1\n2")]

    def test_line_numbers_count_through_the_report(self) -> None:
        text = "a\n$ one\nb\n```\nc\n"
        lines = text.split("\n")
        for section in sections(clean(text)):
            assert section.text.split("\n")[0] == lines[section.first - 1]

    @given(st.text(alphabet="$>#`ab:@ \n[]|\\", max_size=200))
    def test_no_line_is_lost(self, text: str) -> None:
        rest = [line for part in sections(clean(text)) for line in part.text.split("\n")]
        for line in clean(text).split("\n"):
            if re.fullmatch(r"[ab ]+", line) and line.strip():
                assert line in rest


class TestCleaning:
    def test_quote_marks_go_where_most_lines_have_them(self) -> None:
        assert clean("> a\n> b\n\nc\n").split("\n")[:2] == ["a", "b"]
        assert clean(">>> import torch\n") == ">>> import torch\n"
        assert clean("x\ny\n> z\n") == "x\ny\n> z\n"

    def test_colours_and_odd_spaces_go(self) -> None:
        assert clean("\x1b[1;31mError\x1b[0m:\xa0bad\ufeff") == "Error: bad"

    @given(st.text(max_size=300))
    def test_lines_keep_their_number(self, text: str) -> None:
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        assert clean(text).count("\n") == plain.count("\n")


class TestPlaces:
    def test_the_container_is_judged_and_the_host_fills_in_the_machine(self) -> None:
        facts = judged_place(
            {
                "host": {
                    "os.id": Fact("os.id", "debian", "h"),
                    "kernel.release": Fact("kernel.release", "6.1", "h"),
                },
                "container": {"os.id": Fact("os.id", "ubuntu", "c")},
            }
        )
        assert facts["os.id"].value == "ubuntu"
        assert facts["kernel.release"].value == "6.1"
        assert facts["scope.host.os.id"].value == "debian"
        assert facts["scope.container.os.id"].value == "ubuntu"

    def test_a_host_alone_is_the_machine(self) -> None:
        facts = judged_place({"": {}, "host": {"os.id": Fact("os.id", "debian", "h")}})
        assert set(facts) == {"os.id"}

    def test_what_holds_only_outside_does_not_leak_into_the_container(self) -> None:
        facts = judged_place(
            {
                "host": {"torch.version": fact("2.1.0")},
                "container": {"os.id": Fact("os.id", "ubuntu", "c")},
            }
        )
        assert "torch.version" not in facts


class TestContradictions:
    @pytest.mark.parametrize(
        ("one", "other", "better"),
        [
            ("2.4.1", "2.4.1+cu121", "2.4.1+cu121"),
            ("12.4", "12.4.131", "12.4.131"),
            ("NVIDIA A100-SXM4-80...", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
            ("2.4.1", "2.4.10", None),
            ("2.4.1+cu121", "2.4.1+cu124", None),
        ],
    )
    def test_the_more_precise_value_is_kept(self, one: str, other: str, better: str | None) -> None:
        for pair in ((one, other), (other, one)):
            found = more_precise(*map(fact, pair))
            assert (found.value if found else None) == better

    def test_two_values_of_one_place_are_told(self) -> None:
        found = values(f"$ nvidia-smi\n{TABLE_580}\n$ nvidia-smi\n{TABLE_615}\n")
        assert found["driver.version"] == "580.95.05"
        told = found["report.contradictions"]
        assert isinstance(told, list)
        assert any(text.startswith("driver.version: 580.95.05") for text in told)

    def test_a_gpu_counted_otherwise_gives_no_facts_to_the_one_of_that_number(self) -> None:
        cuda = "  Device 0: NVIDIA Tesla P40, compute capability 6.1, VMM: yes\n"
        log = f"$ ./llama-cli\nggml_cuda_init: found 1 CUDA devices:\n{cuda}"
        assert values(log)["gpu.0.compute_capability"] == "6.1"
        for text in (f"$ nvidia-smi\n{TABLE_580}\n{log}", f"{log}$ nvidia-smi\n{TABLE_580}"):
            both = values(text)
            assert "P40" not in str(both["gpu.0.name"])
            assert "gpu.0.compute_capability" not in both
            assert both["gpu.0.memory.total"]
            assert "P40" in str(both["report.contradictions"])

    def test_a_quoted_passage_is_read_and_a_single_mark_may_be_a_prompt(self) -> None:
        quoted = "".join(f"> {line}\n" for line in TABLE_580.splitlines())
        told = "\n".join(f"I write line {number} of my own." for number in range(40))
        assert values(f"{quoted}\n{told}\n")["driver.version"] == "580.95.05"
        assert report.clean("> python\nText\n") == "> python\nText\n"

    def test_the_same_table_twice_contradicts_nothing(self) -> None:
        assert "report.contradictions" not in values(f"{TABLE_580}\n{TABLE_580}")


def test_a_fact_names_the_line_it_was_read_in() -> None:
    text = f"Hello\n\n$ nvidia-smi\n{TABLE_580}"
    facts = report.read(text, "report", SIGNATURES).facts
    number = next(n for n, line in enumerate(text.split("\n"), 1) if "Driver Version" in line)
    assert facts["driver.version"].source.endswith(f"line {number}")


@given(st.text(max_size=400))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    report.read(text, "report", SIGNATURES)


@pytest.mark.parametrize(
    "line",
    [
        "It is not a Driver/library version mismatch problem.",
        'I do not get "Driver/library version mismatch" any more.',
        "Last month we had Failed to initialize NVML: Driver/library version mismatch, it is gone",
        "Fixed in #1234: The NVIDIA driver on your system is too old (found version 11040).",
        'assert "Torch not compiled with CUDA enabled" in str(error)',
    ],
)
def test_what_is_only_spoken_of_is_no_error(line: str) -> None:
    assert not [name for name in values(line) if name.startswith("signal.")]


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        "2026-01-01 worker not ready: Torch not compiled with CUDA enabled",
        "I get: Failed to initialize NVML: Driver/library version mismatch",
    ],
)
def test_an_error_is_one_wherever_it_stands(line: str) -> None:
    assert [name for name in values(line) if name.startswith("signal.")]


def test_two_versions_of_one_distribution_are_told() -> None:
    found = values(
        "$ conda list\npytorch 2.5.1 py3.11_cuda12.4_cudnn9_0 pytorch\ntorch 2.6.0 pypi_0 pypi\n"
    )
    assert "2.5.1 and 2.6.0" in str(found.get("report.contradictions"))
