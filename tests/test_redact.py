"""Redaction: nothing secret is left, everything else is, and what belonged together still does."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envaudit.facts import CATALOGUE, spec_of
from envaudit.model import Fact, ProbeRun, Snapshot, Value, covers
from envaudit.redact import MARK, NOBODY, SECRET_FACTS, redact
from envaudit.snapshot import dump, finish, load

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
BOOT = "a0cb58be-6aa4-4f55-b9bc-6f6e81eed313"


def look(
    facts: dict[str, Any], runs: tuple[ProbeRun, ...] = (), source: str = "test", **rest: Any
) -> Snapshot:
    told = {name: Fact(name, value, source) for name, value in facts.items()}
    return finish(Snapshot("", "2026-11-30T14:15:00Z", told, runs, **rest))


def hidden(value: Value, name: str = "x.text", /, **others: Any) -> Any:
    """What becomes of one value, next to other facts."""
    return redact(look({name: value, **others})).facts[name].value


FULL = look(
    {
        "host.name": "zx81.physik.uni-ort.de",
        "boot.id": BOOT,
        "gpu.0.name": "NVIDIA H100 80GB HBM3",
        "gpu.0.uuid": UUID,
        "gpu.0.serial": "1652922013234",
        "gpu.0.mig.instances": ["MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"],
        "gpu.0.pci.address": "0000:65:00.0",
        "env.CUDA_VISIBLE_DEVICES": f"{UUID},GPU-8932f937",
        "env.LD_LIBRARY_PATH": "/home/hquux/lib:/scratch/hquux/cuda/lib64:/usr/local/cuda/lib64",
        "env.PIP_INDEX_URL": "https://hquux:geheim123@pypi.uni-ort.de:8443/simple",
        "python.executable": "/home/hquux/venv/bin/python",
        "dist.mypkg.origin": "git+ssh://git@git.uni-ort.de/hquux/mypkg.git",
        "dist.torch.origin": "https://download.pytorch.org/whl/cu130/torch.whl",
        "container.image": "registry.uni-ort.de:5000/ml/train:7",
        "kernel.cmdline": "ip=10.11.12.13::10.11.12.1 BOOTIF=01-aa-bb-cc-dd-ee-0f root=/dev/sda1",
        "host.disk./home/hquux.free_ratio": 0.4,
        "dist.nvidia-cudnn-cu13.version": "9.10.2.21",
        "cudnn.installs": [
            {"path": "/home/hquux/lib/libcudnn.so.9.10.2.21", "version": "9.10.2.21"}
        ],
        "nccl.socket": "fe80::a8bb:ccff:fedd:ee0f%eth0 on zx81",
        "windows.path": "C:\\Users\\Hanna Quux\\AppData\\x C:/Users/hquux/y",
    },
    runs=(
        ProbeRun(
            "python_env",
            "failed",
            "hquux@zx81: /home/hquux/venv: no answer from 10.11.12.13 (hanna.quux@uni-ort.de)",
            ("python.*", "host.disk./home/hquux.*"),
            {"host.disk./home/hquux.free": "denied to hquux on ZX81"},
        ),
    ),
    source="/home/hquux/venv/pyvenv.cfg on zx81.physik.uni-ort.de",
    label="zx81 before hquux moved the driver",
    host={"name": "zx81", "boot_id": BOOT},
    target={"executable": "/home/hquux/venv/bin/python"},
    transactions=(
        {"manager": "apt", "command": "apt install /home/hquux/x.deb", "user": "hquux (1000)"},
    ),
)
SECRETS = (
    *("hquux", "hanna", "zx81", "uni-ort", "physik", "8932f937", "d72c", "c6d4f1ef", BOOT[:8]),
    *("1652922013234", "geheim", "10.11.12.", "aa-bb-cc", "ee0f", "fe80"),
)


def test_nothing_secret_is_left_anywhere() -> None:
    text = dump(redact(FULL)).lower()
    assert [secret for secret in SECRETS if secret in text] == []
    assert all(secret in dump(FULL).lower() for secret in SECRETS)


def test_one_secret_has_one_replacement_everywhere() -> None:
    snapshot = redact(FULL)
    value = {name: fact.value for name, fact in snapshot.facts.items()}
    assert value["host.name"] == snapshot.host["name"] == "host-1"
    assert value["python.executable"] == "/home/user-1/venv/bin/python"
    assert snapshot.facts["python.executable"].source == "/home/user-1/venv/pyvenv.cfg on host-1"
    assert value["env.LD_LIBRARY_PATH"] == (
        "/home/user-1/lib:/scratch/user-1/cuda/lib64:/usr/local/cuda/lib64"
    )
    assert value["gpu.0.uuid"] == "GPU-00000001-0000-0000-0000-000000000000"
    assert value["env.CUDA_VISIBLE_DEVICES"] == f"{value['gpu.0.uuid']},GPU-00000001"
    assert value["gpu.0.mig.instances"] == ["MIG-00000001-0000-0000-0000-000000000000"]
    assert value["gpu.0.serial"] == "serial-1"
    assert value["boot.id"] == snapshot.host["boot_id"] == "00000000-0000-0000-0000-000000000001"
    assert value["host.disk./home/user-1.free_ratio"] == 0.4
    assert snapshot.label == "host-1 before user-1 moved the driver"
    assert snapshot.transactions[0]["user"] == "user-1 (1000)"
    run = snapshot.probes[0]
    assert run.detail.startswith("user-1@host-1: /home/user-1/venv: no answer from ip-")
    assert run.provides == ("python.*", "host.disk./home/user-1.*")
    assert run.gaps == {"host.disk./home/user-1.free": "denied to user-1 on host-1"}


def test_what_is_no_secret_stays() -> None:
    value = {name: fact.value for name, fact in redact(FULL).facts.items()}
    assert value["gpu.0.name"] == "NVIDIA H100 80GB HBM3"
    assert value["gpu.0.pci.address"] == "0000:65:00.0"
    assert value["dist.nvidia-cudnn-cu13.version"] == "9.10.2.21"
    assert value["cudnn.installs"] == [
        {"path": "/home/user-1/lib/libcudnn.so.9.10.2.21", "version": "9.10.2.21"}
    ]
    assert value["dist.torch.origin"] == "https://download.pytorch.org/whl/cu130/torch.whl"
    assert str(value["kernel.cmdline"]).endswith(" root=/dev/sda1")
    assert str(value["env.PIP_INDEX_URL"]).startswith("https://host-")
    assert str(value["env.PIP_INDEX_URL"]).endswith(":8443/simple")
    assert len(value) == len(FULL.facts)


def test_the_result_is_a_valid_snapshot_and_says_what_it_is() -> None:
    snapshot = redact(FULL)
    assert load(dump(snapshot).encode(), "x") == snapshot
    assert snapshot.tool[MARK] is True
    assert snapshot.id != FULL.id  # a hash over the secrets could confirm a guess
    assert snapshot.id.startswith("20261130141500-")


def test_redacting_is_deterministic_and_idempotent() -> None:
    once = redact(FULL)
    shuffled = Snapshot(
        FULL.id,
        FULL.taken_at,
        dict(reversed(list(FULL.facts.items()))),
        FULL.probes,
        FULL.fingerprint,
        FULL.label,
        FULL.tool,
        FULL.host,
        FULL.target,
        FULL.transactions,
    )
    assert dump(redact(shuffled)) == dump(once)
    assert redact(once) == once
    assert redact(load(dump(once).encode(), "x")) == once
    assert dump(redact(load(dump(FULL).encode(), "x"))) == dump(once)


def test_with_a_salt_two_snapshots_agree_and_without_it_nobody_can_test_a_guess() -> None:
    one = redact(look({"host.name": "zx81", "x.path": "/home/zbeta:/home/hquux"}), "salt")
    two = redact(look({"x.path": "/home/hquux/a on zx81", "host.name": "zx81"}), "salt")
    other = redact(look({"host.name": "zx81"}), "pepper")
    assert one.facts["host.name"].value == two.facts["host.name"].value
    assert one.facts["host.name"].value != other.facts["host.name"].value
    user = str(two.facts["x.path"].value).split("/")[2]
    assert re.fullmatch("user-[0-9a-f]{8}", user)
    assert str(one.facts["x.path"].value).endswith(f":/home/{user}")
    whole = dump(redact(FULL, "salt"))
    assert not [secret for secret in SECRETS if secret in whole.lower()]
    assert dump(redact(FULL, "salt")) == whole


def test_a_replacement_is_nothing_that_was_there_before() -> None:
    snapshot = redact(look({"host.name": "host-1", "x.text": "host-1 and host-2 and /home/user-1"}))
    assert snapshot.facts["host.name"].value == "host-3"
    assert snapshot.facts["x.text"].value == "host-3 and host-2 and /home/user-2"


# -- kinds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("/home/hquux", "/home/user-1"),
        ("/export/home/hquux/x", "/export/home/user-1/x"),
        ("/Users/hquux/miniconda3", "/Users/user-1/miniconda3"),
        ("/mnt/c/Users/hquux/x", "/mnt/c/Users/user-1/x"),
        ("/home/users/hquux/x", "/home/users/user-1/x"),
        ("C:\\Users\\hquux\\x", "C:\\Users\\user-1\\x"),
        ("C:\\\\Users\\\\hquux\\\\x", "C:\\\\Users\\\\user-1\\\\x"),
        ("C:\\Users\\Hanna Quux\\x", "C:\\Users\\user-1\\x"),
        ("C:\\Users\\hquux is full", "C:\\Users\\user-1 is full"),
        ("~hquux/venv", "~user-1/venv"),
        ("see /home/hquux.", "see /home/user-1."),
        ("/home/jörg/x", "/home/user-1/x"),
        ("/home/hquux,/opt/HQUUX_env", "/home/user-1,/opt/user-1_env"),
        ("/home/hquux and hquux2", "/home/user-1 and hquux2"),
        ("mail hanna@uni-ort.de now", "mail email-1 now"),
        ("10.11.12.13:29500", "ip-1:29500"),
        ("[fe80::1:2]:80", "[ip-1]:80"),
        ("2001:db8::8a2e:370:7334", "ip-1"),
        ("::ffff:10.11.12.13", "::ffff:ip-1"),
        ("nfs 10.11.12.13 and 10.11.12.1", "nfs ip-1 and ip-2"),
        ("aa:bb:cc:dd:ee:0f", "mac-1"),
        ("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c", "mac-1"),
        (f"{UUID.upper()}", "GPU-00000001-0000-0000-0000-000000000000"),
        (f"MIG-{UUID}/1/2", "MIG-GPU-00000001-0000-0000-0000-000000000000/1/2"),
        (
            f"{UUID} is {UUID[4:]}",
            f"GPU-{1:08}-0000-0000-0000-{0:012} is {1:08}-0000-0000-0000-{0:012}",
        ),
        (f"root=UUID={BOOT}", "root=UUID=00000000-0000-0000-0000-000000000001"),
        ("/docker/" + "0123456789abcdef" * 4, "/docker/id-1"),
        ("https://hquux:geheim@github.com/simple", "https://github.com/simple"),
        ("https://x:a/b@github.com/simple", "https://github.com/simple"),
        ("http://proxy7:3128", "http://host-1:3128"),
        ("tcp://zx81:29500", "tcp://host-1:29500"),
        ("https://pypi.uni-ort.de/simple", "https://host-1/simple"),
        ("ip-10-11-12-13.ec2.internal", "host-1"),
        ("?token=abc123def&x=1", "?token=***&x=1"),
        ("hf_abcdefghijkl", "***"),
    ],
)
def test_what_is_found_by_its_form(text: str, after: str) -> None:
    assert hidden(text) == after


@pytest.mark.parametrize(
    "text",
    [
        "/home/ubuntu/venv",
        "/Users/runner/x",
        "/home",
        "/usr/local/cuda-13.0/lib64",
        "localhost:80 127.0.0.1 ::1 0.0.0.0 255.255.255.0",
        "std::vector<int>::size c10::Error at::cuda",
        "2026-11-30T14:15:00Z 12:34:56",
        "0000:65:00.0 00000000:65:00.0",
        "10de:2330 10de:16c1",
        "00:00:00:00:00:00",
        "nvidia-cudnn-cu12==9.10.2.21",
        "nvidia_cublas_cu12-12.8.4.1.dist-info/METADATA",
        "libcublas.so.12.8.4.1",
        "cuDNN 9.10.2.21",
        "TensorRT-10.1.0.27",
        "requires torch>=2.8.0.1",
        "cuDNN version: 9.10.2.21",
        "5.15.167.4-microsoft-standard-WSL2",
        "1.2.3.4.5",
        "git+https://github.com/org/repo@main",
        "git@github.com:org/repo.git",
        "getty@tty1.service cuda@12.4.0",
        "https://objects.githubusercontent.com/packages/x.whl",
        "nvcr.io/nvidia/pytorch:26.10-py3@sha256:" + "0123456789abcdef" * 4,
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        "google.protobuf.internal torch.local",
    ],
)
def test_what_only_looks_like_a_secret(text: str) -> None:
    assert hidden(text) == text


def test_a_user_named_like_the_stack_goes_only_where_he_is_meant() -> None:
    snapshot = redact(
        look(
            {
                "gpu.0.name": "Tesla T4",
                "os.id": "arch",
                "python.executable": "/home/tesla/bin/python",
                "x.text": "~tesla/x tesla@zx81 in /Users/Tesla has a Tesla",
            }
        )
    )
    value = {name: fact.value for name, fact in snapshot.facts.items()}
    assert value["gpu.0.name"] == "Tesla T4"
    assert value["python.executable"] == "/home/user-1/bin/python"
    assert value["x.text"] == "~user-1/x user-1@zx81 in /Users/user-1 has a Tesla"


def test_a_host_named_like_the_stack_goes_only_where_it_is_meant() -> None:
    snapshot = redact(
        look({"host.name": "h100", "gpu.0.name": "NVIDIA H100", "x.text": "a@h100 tcp://h100:1"})
    )
    value = {name: fact.value for name, fact in snapshot.facts.items()}
    assert value == {
        "host.name": "host-1",
        "gpu.0.name": "NVIDIA H100",
        "x.text": "a@host-1 tcp://host-1:1",
    }


@pytest.mark.parametrize("name", sorted(NOBODY - {"home", "users"}))  # below these are homes
def test_nobody_is_hidden(name: str) -> None:
    snapshot = look({"host.name": name, "x.text": f"/home/{name}/x"})
    assert redact(snapshot).facts == snapshot.facts


@pytest.mark.parametrize("serial", ["0", "N/A", "[N/A]", "Unknown", "", 0])
def test_what_is_no_serial_number_stays(serial: Value) -> None:
    assert hidden(serial, "gpu.0.serial") == serial


def test_a_serial_number_may_be_a_number() -> None:
    assert hidden(1652922013234, "gpu.0.serial") == "serial-1"
    facts = {"gpu.0.serial": 1652922013234}
    assert hidden("board 1652922013234", **facts) == "board serial-1"


def test_every_fact_that_identifies_a_machine_has_been_thought_of() -> None:
    """A new identity fact in the catalogue belongs into SECRET_FACTS or into this list."""
    searched = {
        *("kernel.cmdline", "driver.libcuda.path", "driver.libnvml.path", "driver.compat.path"),
        *("cuda.nvcc.path", "cuda.home", "lib.*.path", "lib.*.for", "env.*"),
        *("python.executable", "python.prefix", "python.path", "dist.duplicates"),
    }
    tells_nobody = {"boot.time", "gpu.driver_bound", "gpu.*.pci.address", "pci.gpu.*.address"}
    tells_nobody |= {"kernel.log.xids", "kernel.log.sxids"}
    for spec in CATALOGUE:
        if spec.identity and spec.pattern not in searched | tells_nobody:
            assert any(covers(pattern, spec.pattern) for pattern in SECRET_FACTS), spec.pattern
    for pattern in SECRET_FACTS:
        assert spec_of(pattern) is not None


# -- whatever the snapshot -------------------------------------------------------------------

# Letters that no word of a snapshot is made of, so that finding one means that it was left.
odd = st.text("qxzjkw", min_size=5, max_size=9)
octet = st.integers(1, 250)
kinds = st.one_of(
    odd.map(lambda user: (user, f"/home/{user}/venv/bin/python")),
    odd.map(lambda user: (user, f"C:\\Users\\{user}\\x")),
    odd.map(lambda host: (host, f"tcp://{host}:29500")),
    odd.map(lambda host: (f"{host}.de", f"https://www.{host}.de/x")),
    odd.map(lambda user: (f"{user}@{user}.org", f"write to {user}@{user}.org")),
    odd.map(lambda word: (f"{word}9", f"https://{word}:{word}9@github.com/")),
    st.tuples(octet, octet, octet, octet)
    .map(lambda four: ("{}.{}.{}.{}".format(*four), "at {}.{}.{}.{}:1".format(*four)))
    .filter(lambda pair: not pair[0].startswith("127.")),
    st.uuids(version=4).map(lambda uuid: (str(uuid), f"{uuid}")),
    st.uuids(version=4).map(lambda uuid: (str(uuid), f"GPU-{uuid}")),
    st.lists(st.integers(16, 255), min_size=6, max_size=6, unique=True).map(
        lambda six: (":".join(f"{n:02x}" for n in six),) * 2
    ),
)
around = st.sampled_from(["{}", "see {}", "{}, then more", "({})", "a={}", "<{}>", '"{}"'])


@st.composite
def filled(draw: st.DrawFn) -> tuple[list[str], Snapshot]:
    """A snapshot with secrets in every place, and what they are."""
    secrets = []

    def text() -> str:
        secret, form = draw(kinds)
        secrets.append(secret)
        again = draw(st.sampled_from(secrets))  # once more, and without what makes it one
        return f"{draw(around).format(form)} {draw(around).format(again)}"

    values: dict[str, Any] = {"x.text": text(), "x.list": [text(), {"path": text(), "n": 1}]}
    if draw(st.booleans()):
        host = draw(odd)
        secrets.append(host)
        values["host.name"] = host
        values["x.host"] = f"on {host.upper()} and {host}.local"
    run = ProbeRun("p", "failed", text(), ("x.*",), {"x.gap": text()})
    return secrets, look(
        values,
        (run,),
        text(),
        label=draw(st.one_of(st.none(), st.builds(text))) or None,
        target={"executable": text()},
        transactions=({"command": text(), "user": draw(odd)},),
    )


@given(filled(), st.sampled_from([None, "salt"]))
@settings(max_examples=150, deadline=None)
def test_whatever_is_secret_is_left_nowhere(
    made: tuple[list[str], Snapshot], salt: str | None
) -> None:
    secrets, snapshot = made
    after = redact(snapshot, salt)
    text = dump(after).lower()
    assert [secret for secret in secrets if secret in text] == []
    assert str(snapshot.transactions[0]["user"]) not in text
    assert redact(snapshot, salt) == after
    assert redact(after, salt) == after
    assert load(text_of(after), "x") == after


def text_of(snapshot: Snapshot) -> bytes:
    return dump(snapshot).encode()


@given(st.lists(st.tuples(octet, octet, octet, octet), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_version_that_looks_like_an_address_is_never_touched(
    versions: list[tuple[int, int, int, int]],
) -> None:
    facts: dict[str, Any] = {}
    texts = ["{}.{}.{}.{}".format(*version) for version in versions]
    for number, version in enumerate(texts):
        facts[f"dist.nvidia-lib{number}.version"] = version
        facts[f"outside.of{number}.version"] = version
        facts[f"x.{number}"] = f"/usr/lib/{version}/lib.so and {version}"
    facts["dist.all"] = [f"lib=={version}" for version in texts]
    facts["host.name"] = "zx81"
    before = look(facts, source=f"METADATA {texts[0]}")
    after = redact(before)
    for name in facts:
        if name != "host.name":
            assert after.facts[name] == before.facts[name]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,3}\.[a-z/@:.0-9-]{1,12}", fullmatch=True),
        st.text(st.sampled_from("/home@:.-\\~ab19GPU-0é\n{}[]\"'=%"), max_size=60),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=300, deadline=None)
def test_no_text_is_too_odd(facts: dict[str, str]) -> None:
    after = redact(look(facts))
    assert load(json.dumps(json.loads(dump(after))).encode(), "x") == after
    assert redact(after) == after


@pytest.mark.parametrize(
    "piece",
    ["://a:b", "://", "a", "a.", "a-", "1.2.3.", "a@", "a@a.", "://a@", "~a", "/home/", "\\Users\\"]
    + [
        "token=",
        "::",
        "aa:",
        "GPU-00000000-",
        "hf_",
        "ip-1-",
        "0123456789abcdef-",
        "://a" + "a" * 99,
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * 200_000)[:200_000]
    began = time.monotonic()
    redact(look({"x.text": text, "host.name": "zx81", "x.more": f"{text}!@{text}"[:200_000]}))
    assert time.monotonic() - began < 10
