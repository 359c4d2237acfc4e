"""What ldd, LD_DEBUG, ldconfig, a process's maps and the loader's errors say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, holds, imported, is_linear, prefixes_hold

READER = "loader"
WHEEL = "/home/user/venv/lib/python3.10/site-packages/nvidia"

LDD = """\
	linux-vdso.so.1 (0x00007ffd1c5fe000)
	libnccl.so.2 => /venv/lib/python3.10/site-packages/torch/lib/../../nvidia/nccl/lib/libnccl.so.2 (0x00007f7a62a00000)
	libcudnn.so.8 => not found
	libstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f0000000000)
	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f0000000000)
	/lib64/ld-linux-x86-64.so.2 (0x00007f0000000000)
"""  # noqa: E501
LD_DEBUG = """\
      4242:	find library=libcudnn.so.9 [0]; searching
      4242:	 search path=/opt/a:/opt/b		(LD_LIBRARY_PATH)
      4242:	  trying file=/opt/a/libcudnn.so.9
      4242:	file=libnvJitLink.so.12 [0];  needed by /opt/x/libcusparse.so.12 [0]
      4242:	calling init: /usr/lib/x86_64-linux-gnu/libcudnn.so.9
      4242:	calling init: /usr/local/cuda-12.1/lib64/libnvJitLink.so.12
      4242:	binding file /opt/x/a.so [0] to /usr/lib/libnccl.so.2.18.3 [0]: normal symbol `ncclInit'
"""
CACHE = """\
1234 libs found in cache `/etc/ld.so.cache'
	libnccl.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libnccl.so.2
	libcudnn.so.8 (libc6,x86-64) => /usr/local/cuda/lib64/libcudnn.so.8
	libcudnn.so.8 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcudnn.so.8
	libcuda.so.1 (libc6,x86-64) => /usr/local/cuda/compat/libcuda.so.1
	libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
	libz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1
"""
CACHE_V = """\
/usr/local/cuda/compat: (from /etc/ld.so.conf.d/00-compat.conf:1)
	libcuda.so.1 -> libcuda.so.575.57.08
/usr/lib/x86_64-linux-gnu: (from <builtin>:0)
	libcudnn.so.8 -> libcudnn.so.8.9.7 (changed)
"""
MAPS = """\
7f0a00000000-7f0a00010000 r-xp 00000000 08:01 123456   /usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2
python 4242 user mem REG 8,1 29453200 1234 /usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05
"""
STRACE = """\
openat(AT_FDCWD, "/opt/a/libcudart.so.12", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file)
[pid  42] openat(AT_FDCWD, "/opt/b/libcudart.so.12", O_RDONLY|O_CLOEXEC) = 3
"""
UNDEFINED = (
    f"ImportError: {WHEEL}/cusparse/lib/libcusparse.so.12: undefined symbol: "
    "__nvJitLinkAddData_12_1, version libnvJitLink.so.12\n"
)
GLIBCXX = (
    "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found "
    "(required by /opt/conda/lib/python3.10/site-packages/torch/lib/libtorch_python.so)\n"
)
STUB = "AttributeError: /opt/cuda-12.1/lib64/stubs/libcuda.so: undefined symbol: cuInit\n"
SAMPLES = (LDD, LD_DEBUG, CACHE, CACHE_V, MAPS, STRACE, UNDEFINED, GLIBCXX, STUB)
COMMANDS = ("", "ldd libtorch_cuda.so | grep nccl", "ldconfig -p", "LD_DEBUG=libs python x.py")


class TestLoaded:
    def test_ldd(self) -> None:
        read = imported(READER, LDD, "ldd /venv/lib/torch/lib/libtorch_cuda.so")
        told = {fact.name: fact.value for fact in read.facts}
        nccl = "/venv/lib/python3.10/site-packages/nvidia/nccl/lib/libnccl.so.2"
        assert told == {
            "lib.libnccl.so.2.path": nccl,
            "lib.libnccl.so.2.via": "ldd",
            "lib.libnccl.so.2.for": "libtorch_cuda.so",
            "lib.libcudnn.so.8.for": "/venv/lib/torch/lib/libtorch_cuda.so",
            "lib.libstdc++.so.6.path": "/lib/x86_64-linux-gnu/libstdc++.so.6",
            "lib.libstdc++.so.6.via": "ldd",
            "lib.libstdc++.so.6.for": "libtorch_cuda.so",
            "nccl.installs": [f"{nccl} unknown ldd"],
            "libstdcxx.installs": ["/lib/x86_64-linux-gnu/libstdc++.so.6 unknown ldd"],
        }
        assert read.absent == ("lib.libcudnn.so.8.path",)
        assert read.lines["lib.libnccl.so.2.path"] == 2

    def test_ldd_of_several_files_names_them(self) -> None:
        text = "/opt/a.so:\n\tlibcudnn.so.9 => /opt/libcudnn.so.9.1.0 (0x00007f0)\n"
        told = facts(READER, text, "ldd /opt/*.so")
        assert told["lib.libcudnn.so.9.for"] == "a.so"
        assert told["lib.libcudnn.so.9.version"] == told["cudnn.version"] == "9.1.0"

    def test_debug(self) -> None:
        told = facts(READER, LD_DEBUG)
        assert told["lib.libcudnn.so.9.path"] == "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
        assert told["lib.libcudnn.so.9.via"] == "LD_DEBUG"
        assert told["lib.libnvJitLink.so.12.for"] == "libcusparse.so.12"
        assert told["lib.libnccl.so.2.version"] == told["nccl.version"] == "2.18.3"

    def test_maps_and_open_files(self) -> None:
        told = facts(READER, MAPS)
        assert told["cudnn.version"] == told["lib.libcudnn.so.8.version"] == "8.9.2"
        assert told["driver.libcuda.version"] == "535.104.05"
        assert told["driver.libcuda.stub"] is False
        assert facts(READER, STRACE)["lib.libcudart.so.12.path"] == "/opt/b/libcudart.so.12"

    def test_errors_name_the_file(self) -> None:
        told = facts(READER, UNDEFINED)
        assert told["lib.libcusparse.so.12.path"] == f"{WHEEL}/cusparse/lib/libcusparse.so.12"
        assert "lib.libnvJitLink.so.12.path" not in told
        told = facts(READER, GLIBCXX)
        assert told["lib.libstdc++.so.6.path"] == "/lib/x86_64-linux-gnu/libstdc++.so.6"
        assert told["lib.libstdc++.so.6.for"] == "libtorch_python.so"
        assert "os.libstdcxx.version" not in told

    def test_a_stub_that_is_loaded(self) -> None:
        told = facts(READER, STUB)
        assert told["driver.libcuda.stub"] is True
        assert told["driver.libcuda.path"] == "/opt/cuda-12.1/lib64/stubs/libcuda.so"

    def test_a_compat_library_that_is_loaded(self) -> None:
        text = "\tlibcuda.so.1 => /usr/local/cuda/compat/libcuda.so.1 (0x00007f0000000000)\n"
        assert facts(READER, text)["driver.compat.path"] == "/usr/local/cuda/compat/libcuda.so.1"


class TestCache:
    def test_what_there_is(self) -> None:
        assert facts(READER, CACHE, "ldconfig -p") == {
            "nccl.installs": ["/lib/x86_64-linux-gnu/libnccl.so.2 unknown ldconfig"],
            "cudnn.installs": [
                "/usr/local/cuda/lib64/libcudnn.so.8 unknown ldconfig",
                "/usr/lib/x86_64-linux-gnu/libcudnn.so.8 unknown ldconfig",
            ],
            "driver.library.copies": [
                "/usr/local/cuda/compat/libcuda.so.1",
                "/lib/x86_64-linux-gnu/libcuda.so.1",
            ],
            "driver.compat.path": "/usr/local/cuda/compat/libcuda.so.1",
        }

    def test_with_links(self) -> None:
        assert facts(READER, CACHE_V, "ldconfig -v") == {
            "driver.library.copies": ["/usr/local/cuda/compat/libcuda.so.575.57.08 575.57.08"],
            "driver.compat.path": "/usr/local/cuda/compat/libcuda.so.575.57.08",
            "driver.compat.version": "575.57.08",
            "cudnn.installs": ["/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7 8.9.7 ldconfig"],
        }


@pytest.mark.parametrize(
    "text",
    [
        "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open\n",
        "      4242:	  trying file=/opt/a/libcudnn.so.9\n",
        "libcudnn.so.8 => I think it is missing\n",
        "the lib /usr/lib/libcudnn.so.8.9.7 is there\n",
        "libm.so.6 => /lib/libm.so.6 (0x00007f0)\n",
    ],
)
def test_what_is_not_loaded(text: str) -> None:
    assert facts(READER, text) == {}
    assert absent(READER, text) == set()


@given(st.sampled_from(SAMPLES), st.integers(0, 3000), st.sampled_from(COMMANDS))
def test_a_text_cut_anywhere(text: str, at: int, command: str) -> None:
    prefixes_hold(READER, text, at, command)


LINE = st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)


@given(st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(COMMANDS))
def test_any_mixture(text: str, command: str) -> None:
    holds(READER, text, command)


def test_takes_no_long_time() -> None:
    is_linear(READER)
