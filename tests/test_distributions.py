from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from envaudit.distributions import (
    Distribution,
    how_installed,
    parse_direct_url,
    parse_record_name,
    parse_requires_txt,
    plainly_applies,
    plainly_meets,
    read_header,
    requirements,
    scan,
    unmet,
)
from envaudit.stack import in_gpu_stack, normalise, without_secrets
from tests.probing import machine

TARGET = {
    "python_version": "3.11",
    "python_full_version": "3.11.7",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "implementation_version": "3.11.7",
    "platform_python_implementation": "CPython",
    "platform_release": "6.8.0",
    "platform_version": "#1",
}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("torch-2.9.1+cu128.dist-info", ("torch", "2.9.1+cu128")),
        ("nvidia_cudnn_cu12-9.10.2.21.dist-info", ("nvidia-cudnn-cu12", "9.10.2.21")),
        ("old-name-1.0.dist-info", ("old-name", "1.0")),
        ("numpy-1.24.2-py3.11.egg-info", ("numpy", "1.24.2")),
        ("apex.egg-info", ("apex", "")),
        ("apex-0.1-py3.10-linux-x86_64.egg", ("apex", "0.1")),
        ("torch-2.6.0a0+df5bbc09d1.nv24.11.dist-info", ("torch", "2.6.0a0+df5bbc09d1.nv24.11")),
        ("~orch-2.1.0.dist-info", None),
        ("-orch-2.1.0.dist-info", None),
        ("torch", None),
        ("torch.py", None),
        (".dist-info", None),
    ],
)
def test_record_names(entry: str, expected: tuple[str, str] | None) -> None:
    assert parse_record_name(entry) == expected


def test_names_of_the_gpu_stack() -> None:
    for name in ("torch", "torchvision", "nvidia-nccl-cu13", "cuda-toolkit", "jax-cuda13-plugin"):
        assert in_gpu_stack(name), name
    for name in ("requests", "jinja2", "pandas", "typing-extensions"):
        assert not in_gpu_stack(name), name
    assert normalise("Flash_Attn") == "flash-attn"


class TestScan:
    def test_every_kind_of_record(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path,
            {
                "/p/torch-2.9.1.dist-info/METADATA": "Name: torch\nVersion: 2.9.1\n\nVersion: 3",
                "/p/numpy-1.24.2.egg-info": "Name: numpy\nVersion: 1.24.2\n",
                "/p/apex.egg-link": "/src/apex\n.",
                "/p/__editable__.vllm-0.11.0.pth": "import __editable___vllm_0_11_0_finder",
                "/p/__editable___vllm_0_11_0_finder.py": "MAPPING = {'vllm': '/src/vllm/vllm'}",
                "/p/vllm-0.11.0.dist-info/METADATA": "Name: vllm\n",
                "/p/~orch-2.1.0.dist-info/METADATA": "Name: torch\n",
                "/src/apex/apex.egg-info/PKG-INFO": "Name: apex\nVersion: 0.1\n",
                "/e/ops-2.0-py3.11.egg/EGG-INFO/PKG-INFO": "Name: ops\nVersion: 2.0\n",
            },
        )
        installed = scan(host, ["/p", "/src/apex", "/e/ops-2.0-py3.11.egg", "/gone"])
        assert {dist.name: dist.version for dist in installed.found} == {
            "torch": "2.9.1",
            "numpy": "1.24.2",
            "vllm": "0.11.0",
            "apex": "0.1",
            "ops": "2.0",
        }
        assert installed.editable == {
            "apex": "/p/apex.egg-link",
            "vllm": "/p/__editable__.vllm-0.11.0.pth",
        }
        assert installed.finders == ["/p/__editable___vllm_0_11_0_finder.py"]
        assert installed.unreadable == {}

    def test_the_first_on_the_path_wins(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path,
            {"/a/x-1.dist-info/METADATA": "", "/b/X-2.dist-info/METADATA": ""},
        )
        installed = scan(host, ["/a", "/b"])
        assert installed.first()["x"].version == "1"
        assert len(installed.found) == 2

    def test_a_folder_that_may_not_be_listed_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = machine(tmp_path, {"/a/x-1.dist-info/METADATA": ""})

        def listdir(path: str) -> list[str]:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(host, "listdir", listdir)
        installed = scan(host, ["/a"])
        assert installed.unreadable == {"/a": "Permission denied"}

    def test_a_record_without_metadata_has_no_header(self, tmp_path: Path) -> None:
        host = machine(tmp_path, {"/a/x-1.dist-info/RECORD": ""})
        (dist,) = scan(host, ["/a"]).found
        assert read_header(host, dist) is None
        assert requirements(host, dist) == []


class TestRequirements:
    def test_of_a_wheel(self, tmp_path: Path) -> None:
        text = (
            "Metadata-Version: 2.1\r\nName: torch\r\nRequires-Dist: filelock\r\n"
            'Requires-Dist: triton (==3.1.0) ; platform_system == "Linux"\r\n\r\n'
            "Requires-Dist: no-this-is-prose\r\n"
        )
        host = machine(tmp_path, {"/a/torch-2.5.1.dist-info/METADATA": text})
        (dist,) = scan(host, ["/a"]).found
        assert requirements(host, dist) == [
            "filelock",
            'triton (==3.1.0) ; platform_system == "Linux"',
        ]

    def test_of_an_egg(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path,
            {
                "/a/x.egg-info/PKG-INFO": "Name: x\nVersion: 1\n",
                "/a/x.egg-info/requires.txt": 'numpy>=2\n\n[:python_version < "3.9"]\nold\n'
                "\n[Test_It]\npytest\n\n[gpu:sys_platform == 'linux']\ntorch\n",
            },
        )
        (dist,) = scan(host, ["/a"]).found
        assert requirements(host, dist) == [
            "numpy>=2",
            'old ; (python_version < "3.9")',
            "pytest ; extra == 'test-it'",
            "torch ; (sys_platform == 'linux') and extra == 'gpu'",
        ]

    @given(st.text())
    def test_any_requires_txt(self, text: str) -> None:
        parse_requires_txt(text)


class TestOrigin:
    def test_how_a_wheel_came_here(self, tmp_path: Path) -> None:
        record = "/a/x-1.dist-info"
        host = machine(
            tmp_path,
            {
                f"{record}/INSTALLER": "uv\n",
                f"{record}/WHEEL": "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\nTag: b\n",
                f"{record}/direct_url.json": '{"url": "file:///src/x", "dir_info": '
                '{"editable": true}}',
            },
        )
        install = how_installed(host, Distribution("x", "1", "/a", record), {})
        assert install.installer == "uv"
        assert install.tag == "cp311-cp311-linux_x86_64"
        assert install.editable == f"{record}/direct_url.json"
        assert install.origin == "file:///src/x"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                '{"url": "https://me:s3cret@host:8080/a/x-1.whl?sig=s3cret#sha256=ab"}',
                ("https://host:8080/a/x-1.whl", False),
            ),
            (
                '{"url": "ssh://git@host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
                ("ssh://host/x.git@abc", False),
            ),
            ('{"url": "file:///a", "dir_info": {}}', ("file:///a", False)),
            ('{"url": 1}', ("", False)),
            ("[]", ("", False)),
            ("{", ("", False)),
            ("", ("", False)),
            ("[" * 100_000, ("", False)),
        ],
    )
    def test_direct_url(self, text: str, expected: tuple[str, bool]) -> None:
        assert parse_direct_url(text) == expected

    @given(st.text(alphabet="abc:/@?#.", max_size=40))
    def test_no_user_and_no_query_is_left(self, rest: str) -> None:
        cleaned = without_secrets(f"https://me:s3cret@{rest}")
        assert "s3cret" not in cleaned
        assert "?" not in cleaned
        assert "#" not in cleaned


versions = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}(\+cu12[0-9])?", fullmatch=True)
clauses = st.from_regex(
    r"(==|!=|>=|<=|>|<) ?[0-9]{1,2}(\.[0-9]{1,3}){0,3}|~=[0-9]\.[0-9]{1,2}(\.[0-9])?"
    r"|(==|!=)[0-9](\.[0-9])?\.\*",
    fullmatch=True,
)


class TestPlainAnswers:
    """The answers given without a library must be the library's."""

    @given(versions, st.lists(clauses, max_size=3).map(",".join))
    def test_plain_versions(self, version: str, specifiers: str) -> None:
        surely = plainly_meets(version, specifiers)
        assert surely is SpecifierSet(specifiers).contains(version, prereleases=True)

    @given(
        st.from_regex(r"[0-9]\.[0-9](\.post[0-9]|rc[0-9]|a0\+git|\.dev0|-1|_x)?", fullmatch=True),
        st.text(alphabet="<>=!~0123.*+abpost ,", max_size=12),
    )
    def test_never_surely_met_where_the_library_says_no(self, version: str, spec: str) -> None:
        if plainly_meets(version, spec):
            assert SpecifierSet(spec).contains(version, prereleases=True)

    @given(
        st.lists(
            st.sampled_from(
                [
                    'platform_system == "Linux"',
                    "platform_machine != 'x86_64'",
                    'python_version < "3.13"',
                    'python_version >= "3.12"',
                    'extra == "cublas"',
                    'extra == "all"',
                    "(sys_platform == 'win32' or os_name == 'posix')",
                    "'linux' in sys_platform",
                    "sys_platform in 'linux win32'",
                ]
            ),
            min_size=1,
            max_size=4,
        ),
        st.lists(st.sampled_from([" and ", " or "]), min_size=3, max_size=3),
        st.sampled_from([frozenset[str](), frozenset({"cublas"})]),
    )
    def test_markers(self, parts: list[str], joints: list[str], extras: frozenset[str]) -> None:
        marker = parts[0] + "".join(
            joint + part for joint, part in zip(joints, parts[1:], strict=False)
        )
        surely = plainly_applies(marker, TARGET, extras)
        extra = next(iter(extras), "")
        assert surely in (None, Marker(marker).evaluate({**TARGET, "extra": extra}))

    @given(st.text(max_size=60))
    def test_any_marker(self, text: str) -> None:
        plainly_applies(text, TARGET, frozenset())


class TestUnmet:
    def told(self, installed: dict[str, str], *texts: str, version: str = "2.14.1") -> list[str]:
        return unmet({"torch": (version, texts)}, {"torch": version} | installed, TARGET)

    def test_a_version_that_differs(self) -> None:
        assert self.told({"nvidia-nccl-cu13": "2.28.9"}, "nvidia-nccl-cu13==2.30.7") == [
            "torch 2.14.1 requires nvidia-nccl-cu13==2.30.7, installed 2.28.9"
        ]

    def test_one_that_is_missing(self) -> None:
        told = self.told({}, 'triton (~=3.8.0) ; platform_system == "Linux"')
        assert told == ["torch 2.14.1 requires triton~=3.8.0, which is not installed"]

    def test_what_is_for_another_target_does_not_matter(self) -> None:
        assert not self.told(
            {},
            'pywin32; sys_platform == "win32"',
            'old; python_version < "3.9"',
            "arm ; (platform_machine == 'aarch64' or platform_machine == 'arm64')",
            'optree>=0.13.0; extra == "optree"',
        )

    def test_the_target_counts_and_not_ourselves(self) -> None:
        environment = TARGET | {"python_version": "3.8", "python_full_version": "3.8.18"}
        texts = ['backport; python_version < "3.9" or python_full_version < "3.8"']
        told = unmet({"x": ("1", texts)}, {}, environment)
        assert told == ["x 1 requires backport, which is not installed"]

    def test_a_local_version_meets_its_public_one(self) -> None:
        installed = {"torch": "2.9.1+cu128"}
        requirers = {"torchvision": ("0.24.1+cu128", ["torch==2.9.1"])}
        assert unmet(requirers, installed, TARGET) == []
        assert unmet({"x": ("1", ["torch==2.9.1+cu126"])}, installed, TARGET) == [
            "x 1 requires torch==2.9.1+cu126, installed 2.9.1+cu128"
        ]

    def test_a_pre_release_counts_as_installed(self) -> None:
        assert not self.told({"triton": "3.8.0rc1"}, "triton>=3.7")
        assert self.told({"triton": "3.8.0rc1"}, "triton>=3.8")

    def test_extras_that_another_one_asks_for(self) -> None:
        """CUDA 13 wheels pin the libraries behind extras of cuda-toolkit."""
        requirers = {
            "torch": ("2.14.1", ["cuda-toolkit[cublas,Nv_Rtc]==13.0.3; sys_platform == 'linux'"]),
            "cuda-toolkit": (
                "13.0.3.0",
                [
                    "nvidia-cublas==13.1.1.3.*; (os_name=='nt' or os_name!='') and extra=='cublas'",
                    "nvidia-cuda-nvrtc==13.0.88.*; extra == 'nv-rtc'",
                    "nvidia-cufft==12.0.0.61.*; extra == 'cufft'",
                ],
            ),
        }
        installed = {"cuda-toolkit": "13.0.3.0", "nvidia-cublas": "13.2.0.9"}
        assert unmet(requirers, installed, TARGET) == [
            "cuda-toolkit 13.0.3.0 requires nvidia-cublas==13.1.1.3.*, installed 13.2.0.9",
            "cuda-toolkit 13.0.3.0 requires nvidia-cuda-nvrtc==13.0.88.*, which is not installed",
        ]

    def test_circles_end(self) -> None:
        requirers = {"a": ("1", ["b[x]"]), "b": ("1", ["a[y]; extra == 'x'"])}
        assert unmet(requirers, {"a": "1", "b": "1"}, TARGET) == []

    def test_what_cannot_be_understood_is_left_out(self) -> None:
        assert not self.told(
            {"odd": "not-a-version", "a": "1.0"},
            "odd>=1",
            "a>=what",
            "a (>=1.0",
            "=>5",
            "b; python_version ~ 3",
            "",
            "c; no_such_name == '1'",
        )

    def test_a_url_is_met_by_any_version(self) -> None:
        assert not self.told({"x": "1"}, "x @ https://host/x.whl ; python_version > '3'")
        assert self.told({}, "x @ https://host/x.whl")

    @given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=8))
    def test_any_text(self, texts: list[str], version: str) -> None:
        unmet({"x": ("1", texts)}, {"a": version}, TARGET)
