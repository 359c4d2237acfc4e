"""Lists, queries and logs of package managers, old and new, in other languages, cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, gap, holds, imported, is_linear, prefixes_hold

READER = "os_packages"

DPKG = """\
Desired=Unknown/Install/Remove/Purge/Hold
| Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend
|/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)
||/ Name                            Version                     Architecture Description
+++-===============================-===========================-============-==================
hi  libnccl2                        2.18.3-1+cuda12.1           amd64        NVIDIA Collectives
ii  libnvidia-compute-535:amd64     535.216.01-0ubuntu0.22.04.1 amd64        NVIDIA libcompute
ii  libnvidia-compute-535:i386      535.216.01-0ubuntu0.22.04.1 i386         NVIDIA libcompute
rc  libnvidia-compute-525:amd64     525.147.05-0ubuntu0.22.04.1 amd64        NVIDIA libcompute
iU  nvidia-dkms-535                 535.216.01-0ubuntu0.22.04.1 amd64        NVIDIA DKMS package
ii  nvidia-fabricmanager-535        535.183.01-1                amd64        Fabric Manager
ii  nvidia-container-toolkit        1.14.3-1                    amd64        NVIDIA Container
un  nvidia-driver-470               <none>                      <none>       (no description)
ii  vim                             2:8.2.3995-1ubuntu2.15      amd64        editor
"""
DPKG_NARROW = """\
||/ Name           Version      Architecture Description
+++-==============-============-============-=================================
ii  libcuda1:amd64 384.111-4~de amd64        NVIDIA CUDA Driver Library
ii  dkms           2.3-2        all          Dynamic Kernel Module Support Fra
"""
APT = """\
Listing... Done
libcudnn9-cuda-12/now 9.1.0.70-1 amd64 [installed,local]
libnccl2/unknown,now 2.21.5-1+cuda12.4 amd64 [installed,upgradable to: 2.22.3-1+cuda12.5]
nvidia-driver-535/jammy-updates,jammy-security,now 535.183.01-0ubuntu0.22.04.1 amd64 [installiert]
nvidia-driver-550/jammy-updates 550.120-0ubuntu0.22.04.1 amd64
nvidia-driver-470/now 470.1-0ubuntu1 amd64 [residual-config]
cuda-toolkit-12-4/unknown 12.4.1-1 amd64 [upgradable from: 12.4.0-1]
"""
POLICY = """\
libnccl2:
  Installed: 2.18.3-1+cuda12.1
  Candidate: 2.22.3-1+cuda12.5
  Version table:
     2.22.3-1+cuda12.5 600
libcudnn8:
  Installiert:           (keine)
  Installationskandidat: 8.9.7.29-1+cuda12.2
nvidia-driver-535:
  已安装：535.183.01-0ubuntu0.22.04.1
  候选： 535.183.01-0ubuntu0.22.04.1
"""
DPKG_S = """\
Package: libcudnn8
Status: install ok installed
Priority: optional
Architecture: amd64
Version: 8.9.2.26-1+cuda11.8
Depends: libc6

Package: libcudnn9-cuda-12
Version: 9.1.0.70-1
Priority: optional
"""
RPM = """\
kernel-core-5.14.0-362.8.1.el9_3.x86_64
nvidia-driver-cuda-libs-550.54.14-1.el9.x86_64
nvidia-fabric-manager-550.54.15-1.x86_64
kmod-nvidia-open-dkms-550.54.14-1.el9.x86_64
cuda-repo-rhel8-12-1-local-12.1.1_530.30.02-1.x86_64.rpm
bash-5.1.8-6.el9.x86_64
"""
DNF = """\
Installed Packages
nvidia-driver.x86_64                      3:550.54.14-1.el9               @cuda-rhel9-x86_64
nvidia-container-toolkit.x86_64           1.14.6-1                        @nvidia
xorg-x11-drv-nvidia-cuda-libs-but-a-long-one.x86_64
                                          3:550.54.14-1.fc40              @rpmfusion
Available Packages
nvidia-driver.x86_64                      3:555.42.02-1.el9               cuda-rhel9-x86_64
"""
RPM_QI = """\
Name        : nvidia-driver
Epoch       : 3
Version     : 550.54.14
Release     : 1.el9
Architecture: x86_64
Install Date: Mon 01 Apr 2024 10:00:00 AM UTC
"""
ZYPPER = """\
S  | Name               | Type       | Version              | Arch   | Repository
---+--------------------+------------+----------------------+--------+-------------
i+ | nvidia-compute-G06 | package    | 550.54.14-lp155.23.1 | x86_64 | NVIDIA
v  | nvidia-compute-G06 | package    | 555.58-1             | x86_64 | NVIDIA
   | nvidia-glG06       | package    | 550.54.14-1          | x86_64 | NVIDIA
"""
PACMAN = """\
linux 6.8.1.arch1-1
nvidia-dkms 550.67-2
nvidia-utils 1:550.67-2
"""
HISTORY = """\

Start-Date: 2021-04-24  06:50:54
Commandline: /usr/bin/unattended-upgrade
Upgrade: libnvidia-compute-460:amd64 (460.56-0ubuntu0.20.04.1, 460.73.01-0ubuntu0.20.04.1)
End-Date: 2021-04-24  06:51:20

Start-Date: 2021-05-15  14:46:48
Install: docker-ce:amd64 (5:19.03.8~3-0~ubuntu-bionic), libnccl2:amd64 (2.9.8-1, automatic)
Upgrade: libnvidia-compute-460:amd64 (460.73.01-0ubuntu0.20.04.1, 460.80-0ubuntu0.20.04.2)
Remove: linux-headers-5.4.0-70-generic:amd64 (5.4.0-70.78)
"""
DPKG_LOG = """\
2022-05-19 06:04:29 upgrade nvidia-driver-510:amd64 510.60.02-0ubuntu1 510.73.05-0ubuntu1
2022-05-19 06:04:29 status half-configured nvidia-driver-510:amd64 510.60.02-0ubuntu1
2022-05-19 06:05:29 status installed nvidia-driver-510:amd64 510.73.05-0ubuntu1
2022-05-20 06:05:29 status not-installed libcudnn8:amd64 <none>
"""
RPM_LOG = """\
2022-09-14T09:31:08+0000 SUBDEBUG Upgrade: libnvidia-container1-1.11.0-1.x86_64
2022-09-14T09:31:10+0000 SUBDEBUG Upgraded: libnvidia-container1-1.10.0-1.x86_64
Sep 12 03:11:02 Updated: kernel-headers-3.10.0-1160.el7.x86_64
2022-09-17T10:00:02+0000 SUBDEBUG Erase: nvidia-kmod-common-1.3.3-2.fc29.noarch
"""
DNF_HISTORY = """\
Packages Altered:
    Install  kernel-core-5.19.8-100.fc35.x86_64                   @updates
    Upgrade  libnvidia-container1-1.11.0-1.x86_64                 @libnvidia-container
    Upgraded libnvidia-container1-1.10.0-1.x86_64                 @@System
    Removed  nvidia-kmod-common-3:1.3.3-2.fc29.noarch             @@System
"""
ZYPP = """\
2022-12-16 12:56:23|command|root@host1|'zypper' 'update'|
2022-12-16 12:56:23|install|nvidia-compute-G06|550.54.14-1.4|x86_64||NVIDIA|b4d6|
2022-12-16 12:56:25|remove |libcudnn8|8.9.7-1|x86_64|root@host1|
"""
ALPM = """\
[2019-07-16 21:07] [ALPM] installed nvidia (430.26)
[2024-03-20T02:18:50-0300] [ALPM] upgraded nvidia (550.54.14-3 -> 550.67-2)
[2024-03-20T02:18:51-0300] [ALPM] removed nvidia-lts (1:550.54.14-4)
"""
SAMPLES = (
    *(DPKG, DPKG_NARROW, APT, POLICY, DPKG_S, RPM, DNF, RPM_QI, ZYPPER, PACMAN, HISTORY),
    *(DPKG_LOG, RPM_LOG, DNF_HISTORY, ZYPP, ALPM),
)
COMMANDS = ("", "dpkg -l", "rpm -qa", "pacman -Q", "snap list", "apk info -v", "apt-mark showhold")


class TestDebian:
    def test_dpkg(self) -> None:
        assert facts(READER, DPKG, "dpkg -l") == {
            "pkg.libnccl2.version": "2.18.3-1+cuda12.1",
            "pkg.libnccl2.held": True,
            "pkg.libnvidia-compute-535.version": "535.216.01-0ubuntu0.22.04.1",
            "pkg.libnvidia-compute-535:i386.version": "535.216.01-0ubuntu0.22.04.1",
            "pkg.nvidia-dkms-535.version": "535.216.01-0ubuntu0.22.04.1",
            "pkg.nvidia-fabricmanager-535.version": "535.183.01-1",
            "pkg.nvidia-container-toolkit.version": "1.14.3-1",
            "fabricmanager.version": "535.183.01",
            "container.toolkit.version": "1.14.3",
            "driver.package.version": "535.216.01",
        }
        assert absent(READER, DPKG) == {"pkg.nvidia-driver-470.version"}

    def test_a_grepped_row(self) -> None:
        line = "ii  libcudnn9-cuda-13  9.23.0.39-1  amd64  cuDNN runtime libraries for CUDA 13.3\n"
        assert facts(READER, line) == {"pkg.libcudnn9-cuda-13.version": "9.23.0.39-1"}

    def test_a_narrow_terminal_cuts(self) -> None:
        read = imported(READER, DPKG_NARROW, "dpkg -l")
        assert {fact.name: fact.value for fact in read.facts} == {"pkg.dkms.version": "2.3-2"}
        assert gap(read, "pkg.libcuda1.version")

    def test_two_drivers_leave_it_open(self) -> None:
        text = (
            "ii  libnvidia-compute-535  535.1.2  amd64\nii  libnvidia-compute-550  550.9  amd64\n"
        )
        assert gap(imported(READER, text), "driver.package.version")
        assert "driver.package.version" not in facts(READER, text)

    def test_apt_list(self) -> None:
        assert facts(READER, APT) == {
            "pkg.libcudnn9-cuda-12.version": "9.1.0.70-1",
            "pkg.libnccl2.version": "2.21.5-1+cuda12.4",
            "pkg.nvidia-driver-535.version": "535.183.01-0ubuntu0.22.04.1",
            "pkg.cuda-toolkit-12-4.version": "12.4.0-1",
            "driver.package.version": "535.183.01",
        }

    def test_policy_in_every_language(self) -> None:
        told = facts(READER, POLICY)
        assert told["pkg.libnccl2.version"] == "2.18.3-1+cuda12.1"
        assert told["pkg.nvidia-driver-535.version"] == "535.183.01-0ubuntu0.22.04.1"
        assert absent(READER, POLICY) == {"pkg.libcudnn8.version"}

    def test_status(self) -> None:
        assert facts(READER, DPKG_S, "dpkg -s libcudnn8") == {
            "pkg.libcudnn8.version": "8.9.2.26-1+cuda11.8"
        }

    def test_while_it_installs_and_holds(self) -> None:
        text = "Setting up nvidia-dkms-535 (535.183.01-0ubuntu0.22.04.1) ...\n"
        assert facts(READER, text)["pkg.nvidia-dkms-535.version"] == "535.183.01-0ubuntu0.22.04.1"
        assert facts(READER, "nvidia-driver-535\nvim\n", "apt-mark showhold") == {
            "pkg.nvidia-driver-535.held": True
        }

    def test_query(self) -> None:
        told = facts(READER, "libcudnn8:amd64\t8.9.7.29-1+cuda12.2\n", "dpkg-query -W libcudnn8")
        assert told == {"pkg.libcudnn8.version": "8.9.7.29-1+cuda12.2"}


class TestRpm:
    def test_all(self) -> None:
        assert facts(READER, RPM, "rpm -qa") == {
            "pkg.kernel-core.version": "5.14.0-362.8.1.el9_3",
            "pkg.nvidia-driver-cuda-libs.version": "550.54.14-1.el9",
            "pkg.nvidia-fabric-manager.version": "550.54.15-1",
            "pkg.kmod-nvidia-open-dkms.version": "550.54.14-1.el9",
            "fabricmanager.version": "550.54.15",
            "driver.package.version": "550.54.14",
        }

    def test_one_that_is_not_there(self) -> None:
        text = "package nvidia-driver is not installed\n"
        assert absent(READER, text, "rpm -q nvidia-driver") == {"pkg.nvidia-driver.version"}

    def test_dnf(self) -> None:
        told = facts(READER, DNF, "dnf list nvidia*")
        assert told["pkg.nvidia-driver.version"] == "3:550.54.14-1.el9"
        assert told["container.toolkit.version"] == "1.14.6"
        assert told["pkg.xorg-x11-drv-nvidia-cuda-libs-but-a-long-one.version"] == (
            "3:550.54.14-1.fc40"
        )

    def test_info(self) -> None:
        assert facts(READER, RPM_QI)["pkg.nvidia-driver.version"] == "3:550.54.14-1.el9"
        assert facts(READER, RPM_QI.partition("Install")[0]) == {}

    def test_zypper(self) -> None:
        assert facts(READER, ZYPPER) == {
            "pkg.nvidia-compute-G06.version": "550.54.14-lp155.23.1",
            "driver.package.version": "550.54.14",
        }


class TestOthers:
    def test_pacman(self) -> None:
        for command in ("pacman -Q | grep nvidia", ""):
            told = facts(READER, PACMAN, command)
            assert told["pkg.nvidia-utils.version"] == "1:550.67-2"
            assert told["pkg.linux.version"] == "6.8.1.arch1-1"
            assert told["driver.package.version"] == "550.67"
        searched = (
            "extra/nvidia-utils 555.58-1 [installed: 550.67-2]\n    NVIDIA drivers utilities\n"
        )
        assert facts(READER, searched, "pacman -Ss nvidia-utils")["pkg.nvidia-utils.version"] == (
            "550.67-2"
        )
        assert facts(READER, "local/nvidia-utils 550.67-2\n")["driver.package.version"] == "550.67"

    def test_apk_and_snap(self) -> None:
        assert facts(READER, "musl-1.2.4-r2\nbusybox-1.36-r1\n", "apk info -v") == {
            "pkg.musl.version": "1.2.4-r2"
        }
        snaps = "Name    Version  Rev   Tracking       Publisher   Notes\n"
        snaps += "docker  24.0.5   2915  latest/stable  canonical*  -\n"
        assert facts(READER, snaps, "snap list") == {"pkg.docker.version": "24.0.5"}

    @pytest.mark.parametrize(
        "text",
        [
            "I have nvidia-driver-535 and libnccl2 2.18.3 installed.\n",
            "Get:1 http://archive jammy/main amd64 nvidia-driver-535 amd64 535.183.01\n",
            "The following NEW packages will be installed:\n  nvidia-driver-535 libnccl2\n",
            "  nvidia-driver.x86_64  3:555.42.02-1.el9  cuda-rhel9-x86_64  1.1 M\n",
            "5.14.0-362.8.1.el9_3.x86_64\n",
            "Name: nvidia\nVersion: 535.1\n",
            "nvidia 1234-5\n",
            "ii\n",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        assert facts(READER, text) == {}


class TestLogs:
    def test_apts_last_word(self) -> None:
        told = facts(READER, HISTORY, "cat /var/log/apt/history.log")
        assert told["pkg.libnvidia-compute-460.version"] == "460.80-0ubuntu0.20.04.2"
        assert told["driver.package.version"] == "460.80"
        assert told["pkg.docker-ce.version"] == "5:19.03.8~3-0~ubuntu-bionic"
        assert told["pkg.libnccl2.version"] == "2.9.8-1"
        assert absent(READER, HISTORY) == {"pkg.linux-headers-5.4.0-70-generic.version"}

    def test_others(self) -> None:
        assert facts(READER, DPKG_LOG)["pkg.nvidia-driver-510.version"] == "510.73.05-0ubuntu1"
        assert absent(READER, DPKG_LOG) == {"pkg.libcudnn8.version"}
        assert facts(READER, RPM_LOG) == {
            "pkg.libnvidia-container1.version": "1.11.0-1",
            "pkg.kernel-headers.version": "3.10.0-1160.el7",
        }
        assert facts(READER, DNF_HISTORY) == {
            "pkg.kernel-core.version": "5.19.8-100.fc35",
            "pkg.libnvidia-container1.version": "1.11.0-1",
        }
        assert absent(READER, DNF_HISTORY) == {"pkg.nvidia-kmod-common.version"}
        assert facts(READER, ZYPP) == {
            "pkg.nvidia-compute-G06.version": "550.54.14-1.4",
            "driver.package.version": "550.54.14",
        }
        assert absent(READER, ZYPP) == {"pkg.libcudnn8.version"}
        assert facts(READER, ALPM)["pkg.nvidia.version"] == "550.67-2"
        assert absent(READER, ALPM) == {"pkg.nvidia-lts.version"}


@given(st.sampled_from(SAMPLES), st.integers(0, 3000), st.sampled_from(COMMANDS))
def test_a_text_cut_anywhere(text: str, at: int, command: str) -> None:
    prefixes_hold(READER, text, at, command)


LINE = st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)


@given(st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(COMMANDS))
def test_any_mixture(text: str, command: str) -> None:
    holds(READER, text, command)


def test_takes_no_long_time() -> None:
    is_linear(READER)
