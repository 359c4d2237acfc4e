"""Lists of library files by ls, find, locate, and the symbols of a libstdc++."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold

READER = "library_files"

BARE = "libcuda.so\nlibcuda.so.1\nlibcuda.so.575.57.08\nlibcudadebugger.so.575.57.08\n"
LONG = """\
total 90000
lrwxrwxrwx 1 root root       12 Jul  1 12:00 libcuda.so -> libcuda.so.1
lrwxrwxrwx 1 root root       20 Jul  1 12:00 libcuda.so.1 -> libcuda.so.535.104.05
-rw-r--r-- 1 root root 29453200 Jul  1 12:00 libcuda.so.535.104.05
-rwxr-xr-x. 1 root root  1234 Jul  1  2023 libcudart.so.11.8.89
"""
FIND = """\
/usr/lib/x86_64-linux-gnu/libcudnn.so.8
/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7
/usr/lib/x86_64-linux-gnu/libcudnn_ops_infer.so.8.9.7
/venv/lib/python3.10/site-packages/x/lib/libcudnn.so.9
find: '/root': Permission denied
"""
WHEREIS = (
    "libnccl: /usr/lib/x86_64-linux-gnu/libnccl.so /usr/lib/x86_64-linux-gnu/libnccl.so.2.18.3\n"
)
TOOLKITS = """\
drwxr-xr-x  4 root root 4096 Jan  1 00:00 bin
lrwxrwxrwx  1 root root   21 Jan  1 00:00 cuda -> /usr/local/cuda-12.1
drwxr-xr-x 15 root root 4096 Jan  1 00:00 cuda-11.8
drwxr-xr-x 15 root root 4096 Jan  1 00:00 cuda-12.1
"""
RECURSIVE = """\
/usr/local/cuda/lib64:
libcudart.so.12.1.105

/usr/local/cuda/lib64/stubs:
libcuda.so
"""
STRINGS = (
    "GLIBCXX_3.4\nGLIBCXX_3.4.1\nGLIBCXX_3.4.9\nGLIBCXX_3.4.28\nGLIBCXX_DEBUG_MESSAGE_LENGTH\n"
)
SAMPLES = (BARE, LONG, FIND, WHEREIS, TOOLKITS, RECURSIVE, STRINGS)
COMMANDS = (
    "",
    "ls -l /usr/local",
    "docker exec x ls /usr/local/cuda/compat",
    "find / -name 'libcudnn*' 2>/dev/null",
    "strings /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | grep GLIBCXX",
)


class TestLibraries:
    def test_a_compat_folder(self) -> None:
        assert facts(READER, BARE, COMMANDS[2]) == {
            "driver.library.copies": ["/usr/local/cuda/compat/libcuda.so.575.57.08 575.57.08"],
            "driver.compat.on_disk": "575.57.08",
        }

    def test_long_lines_with_links(self) -> None:
        told = facts(READER, LONG, "ls -l /usr/lib/x86_64-linux-gnu | grep cuda")
        assert told["driver.library.copies"] == [
            "/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05 535.104.05"
        ]
        assert told["driver.library.version"] == "535.104.05"
        assert told["cuda.runtime.installs"] == [
            "/usr/lib/x86_64-linux-gnu/libcudart.so.11.8.89 11.8.89 listed"
        ]

    def test_leftovers_of_another_driver(self) -> None:
        text = "/usr/lib64/libcuda.so.535.104.05\n/usr/lib64/libcuda.so.550.54.14\n"
        read = imported(READER, text, "ls /usr/lib64/libcuda.so.*")
        assert gap(read, "driver.library.version")
        assert [fact.name for fact in read.facts] == ["driver.library.copies"]

    def test_found_paths(self) -> None:
        for command in (COMMANDS[3], ""):
            assert facts(READER, FIND, command) == {
                "cudnn.installs": [
                    "/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7 8.9.7 listed",
                    "/venv/lib/python3.10/site-packages/x/lib/libcudnn.so.9 unknown listed",
                ]
            }
        assert facts(READER, WHEREIS, "whereis libnccl")["nccl.installs"] == [
            "/usr/lib/x86_64-linux-gnu/libnccl.so.2.18.3 2.18.3 listed"
        ]

    def test_folders_as_headings(self) -> None:
        told = facts(READER, RECURSIVE, "ls -R /usr/local/cuda/lib64")
        assert told["driver.library.copies"] == ["/usr/local/cuda/lib64/stubs/libcuda.so"]
        assert "driver.library.version" not in told

    def test_the_cpp_library_of_an_environment(self) -> None:
        text = "libstdc++.so.6.0.34\n"
        told = facts(READER, text, "ls $CONDA_PREFIX/lib | grep libstdc++")
        assert told == {
            "libstdcxx.installs": ["$CONDA_PREFIX/lib/libstdc++.so.6.0.34 3.4.34 listed"]
        }

    @pytest.mark.parametrize(
        "text",
        [
            "Searched paths:\n/usr/lib/libcudnn.so.8.9.7\n/usr/lib64/libcudnn.so.8.9.7\n",
            "ls: cannot access '/usr/lib/libcudnn.so.8': No such file or directory\n",
            "I have /usr/lib/libcudnn.so.8.9.7 here\n",
            "/usr/lib/libcudnn.so.8.9.7\n",
            "ImportError: libcudnn.so.9: cannot open shared object file\n",
        ],
    )
    def test_what_is_no_list(self, text: str) -> None:
        assert facts(READER, text) == {}


class TestToolkits:
    def test_folders(self) -> None:
        assert facts(READER, TOOLKITS, "ls -l /usr/local")["cuda.toolkits"] == [
            "/usr/local/cuda-12.1 12.1",
            "/usr/local/cuda-11.8 11.8",
        ]
        assert facts(READER, "/usr/local/cuda-13.0\n", "ls -d /usr/local/cuda-*") == {
            "cuda.toolkits": ["/usr/local/cuda-13.0 13.0"]
        }
        assert facts(READER, "cuda\ncuda-12.4\n", "ls /opt")["cuda.toolkits"] == [
            "/opt/cuda-12.4 12.4"
        ]

    def test_a_variable_is_no_folder(self) -> None:
        assert facts(READER, "/usr/local/cuda-12.0\n", "echo $CUDA_PATH") == {}


class TestSymbols:
    def test_of_the_systems_library(self) -> None:
        assert facts(READER, STRINGS, COMMANDS[4]) == {
            "os.libstdcxx.version": "3.4.28",
            "libstdcxx.installs": ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6 3.4.28 strings"],
        }

    def test_of_a_conda_environment(self) -> None:
        command = "strings $CONDA_PREFIX/lib/libstdc++.so.6 | grep GLIBCXX_3.4 | tail -3"
        assert "os.libstdcxx.version" not in facts(READER, STRINGS, command)
        assert facts(READER, STRINGS, command)["libstdcxx.installs"]

    @pytest.mark.parametrize(
        "command",
        [
            "",
            "strings /usr/lib64/libstdc++.so.6 | grep GLIBCXX_3.4.28",
            "strings /usr/lib64/libstdc++.so.6 | grep GLIBCXX | head -4",
            "strings libfoo.so | grep GLIBCXX",
        ],
    )
    def test_a_part_tells_nothing(self, command: str) -> None:
        assert facts(READER, STRINGS, command) == {}


@given(st.sampled_from(SAMPLES), st.integers(0, 3000), st.sampled_from(COMMANDS))
def test_a_text_cut_anywhere(text: str, at: int, command: str) -> None:
    prefixes_hold(READER, text, at, command)


LINE = st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)


@given(st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(COMMANDS))
def test_any_mixture(text: str, command: str) -> None:
    holds(READER, text, command)


def test_takes_no_long_time() -> None:
    is_linear(READER)
