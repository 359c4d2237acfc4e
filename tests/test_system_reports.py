"""Reports about driver, kernel module, containers, WSL, fabric and hardware: the cause each shows.

Beside texts that show a cause stand neighbours that show none, or another one.
"""

from __future__ import annotations

import pytest

from envaudit import report
from envaudit.check import check
from envaudit.matrix import Matrices
from envaudit.model import Finding, Snapshot

MATRICES = Matrices()

SMI = "$ nvidia-smi\n"
DEAD = (
    f"{SMI}NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
LISTED = "$ nvidia-smi -L\nGPU 0: {} (UUID: GPU-00000000-1111-2222-3333-444444444444)\n"
MIG = LISTED.format("NVIDIA A100-SXM4-40GB") + (
    "  MIG 3g.20gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000000)\n"
    "  MIG 3g.20gb     Device  1: (UUID: MIG-00000000-0000-0000-0000-000000000001)\n"
)
BAD_BUILD = (
    "Error! Bad return status for module build on kernel: 6.8.0-31-generic (x86_64)\n"
    "Consult /var/lib/dkms/{}/build/make.log for more information.\n"
)
NVRM = "[   12.345678] NVRM: "
NOT_CALLED = (
    f"{NVRM}The NVIDIA probe routine was not called for 1 device(s).\n"
    f"{NVRM}No NVIDIA devices probed.\n"
)
HOOK = "docker: Error response from daemon: OCI runtime create failed: nvidia-container-cli: "
ENCODER = "[h264_nvenc @ 0x5581] Cannot load libnvidia-encode.so.1\n"
WSL = "$ uname -r\n5.15.153.1-microsoft-standard-WSL2\n"
NOT_READY = "Error 802: system not yet initialized\n"
UNKNOWN = "Failed to initialize NVML: Unknown Error\n"
BLOCKED = "Failed to initialize NVML: GPU access blocked by the operating system\n"
VGPU = (
    "nvidia-vgpu-mgr[1]: error: vmiop_log: (0x0): Incompatible Guest/Host drivers: "
    "Guest VGX version is newer than the maximum version supported by the Host.\n"
)


def findings(text: str) -> list[Finding]:
    """What fails, without what only informs."""
    read = report.read(text, "report.txt", MATRICES.signatures_for)
    snapshot = Snapshot("x", "2026-12-01T00:00:00Z", read.facts, read.probes)
    return [
        finding
        for finding in check(snapshot, MATRICES).findings
        if finding.verdict == "fail" and finding.severity != "note"
    ]


def roots(text: str) -> set[str]:
    """Causes of the root errors and warnings that a report shows."""
    return {finding.cause for finding in findings(text) if finding.because_of is None}


CASES = [
    # -- one release of the driver ----------------------------------------------------------
    (
        f"{SMI}Failed to initialize NVML: Driver/library version mismatch\n",
        "driver-library-mismatch",
    ),
    (
        HOOK + "initialization error: nvml error: driver/library version mismatch: unknown.\n",
        "driver-library-mismatch",
    ),
    (
        (
            f"{NVRM}API mismatch: the client has the version 525.60.13, but\n"
            "               NVRM: this kernel module has the version 520.61.05.  Please\n"
        ),
        "driver-library-mismatch",
    ),
    (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n",
        "",
    ),
    # -- no module for the kernel -----------------------------------------------------------
    (
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.10.0-28-amd64\n",
        "kernel-module-missing-for-kernel",
    ),
    (
        DEAD + "$ dkms status\nnvidia/535.129.03, 5.15.0-88-generic, x86_64: installed\n"
        "$ uname -r\n5.15.0-89-generic\n",
        "kernel-module-missing-for-kernel",
    ),
    (DEAD + "$ dkms status\nnvidia/550.54.14: added\n", "kernel-module-missing-for-kernel"),
    (
        DEAD + "$ uname -r\n4.15.0-74-generic\n$ ls /lib/modules/*/updates/dkms/\n"
        "/lib/modules/4.15.0-72-generic/updates/dkms/:\nnvidia-drm.ko  nvidia.ko\n",
        "kernel-module-missing-for-kernel",
    ),
    (
        "ERROR: Unable to find the kernel source tree for the currently running kernel.\n",
        "kernel-module-missing-for-kernel",
    ),
    (WSL + "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.153.1\n", ""),
    (DEAD, "driver-not-loaded"),
    # -- the module is not built ------------------------------------------------------------
    (BAD_BUILD.format("nvidia/535.154.05"), "dkms-build-failed-new-kernel"),
    (BAD_BUILD.format("virtualbox/6.1.50"), ""),
    (DEAD + BAD_BUILD.format("nvidia/510.47.03"), "dkms-build-failed-new-kernel"),
    (
        (
            "/var/lib/dkms/nvidia/470.223.02/build/nvidia-drm/nvidia-drm-drv.c:748:40: "
            "error: 'DRM_UNLOCKED' undeclared here (not in a function)\n"
        ),
        "dkms-build-failed-new-kernel",
    ),
    (
        "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_lock'\n",
        "dkms-build-failed-new-kernel",
    ),
    (
        "DKMS make.log for nvidia-535.98 for kernel 6.4.6-76060406-generic (x86_64)\n"
        "cc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'\n"
        + BAD_BUILD.format("nvidia/535.98"),
        "dkms-compiler-mismatch",
    ),
    ("gcc: error: unrecognized command line option '-std=c++20'\n", ""),
    # -- Secure Boot ------------------------------------------------------------------------
    (
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n" + DEAD,
        "secure-boot-unsigned-module",
    ),
    (DEAD + "$ mokutil --sb-state\nSecureBoot enabled\n", "secure-boot-unsigned-module"),
    (DEAD + "$ mokutil --sb-state\nSecureBoot disabled\n", "driver-not-loaded"),
    (LISTED.format("NVIDIA L4") + "$ mokutil --sb-state\nSecureBoot enabled\n", ""),
    (
        DEAD + "$ mokutil --sb-state\nSecureBoot enabled\n$ sudo modprobe nvidia\n"
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.2.0-36-generic\n",
        "kernel-module-missing-for-kernel",
    ),
    # -- another driver ---------------------------------------------------------------------
    (f"{NVRM}GPU 0000:01:00.0 is already bound to nouveau.\n", "other-kernel-driver-bound"),
    (NOT_CALLED, "other-kernel-driver-bound"),
    (f"{NVRM}GPU 0000:01:00.0 is already bound to vfio-pci.\n" + NOT_CALLED, ""),
    (DEAD + "$ lsmod\nnouveau              2306048  4\n", "other-kernel-driver-bound"),
    (
        "ERROR: The Nouveau kernel driver is currently in use by your system.\n",
        "other-kernel-driver-bound",
    ),
    # -- module and GPU ---------------------------------------------------------------------
    (
        (
            f"{NVRM}installed in this system is not supported by "
            f"open\n{NVRM}nvidia.ko because it does "
            f"not include the required GPU\n{SMI}No devices were found\n"
        ),
        "open-module-unsupported-gpu",
    ),
    (
        (
            f"{NVRM}installed in this system requires use of the "
            f"NVIDIA\n{NVRM}open kernel modules.\n"
            f"{NVRM}GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)\n"
        ),
        "open-module-required",
    ),
    (
        f"{NVRM}The NVIDIA GeForce GT 710 GPU installed in this system is\n"
        f"{NVRM} supported through the NVIDIA 470.xx Legacy drivers. Please\n" + DEAD,
        "gpu-dropped-by-driver",
    ),
    (
        (
            f"{NVRM}installed in this system is not supported by the\n"
            f"{NVRM}NVIDIA 450.80.02 driver release.\n"
        ),
        "gpu-needs-newer-driver",
    ),
    (
        (
            "nvidia 0000:01:00.0: Direct firmware load for "
            "nvidia/550.54.14/gsp_ga10x.bin failed with "
            f"error -2\n{NVRM}GPU 0000:01:00.0: RmInitAdapter failed! (0x61:0x56:1697)\n"
        ),
        "gsp-firmware-missing",
    ),
    (
        (
            "nouveau 0000:01:00.0: Direct firmware load for nvidia/ga104/gsp/gsp-535.113.01.bin "
            "failed with error -2\n"
        ),
        "",
    ),
    (f"{NVRM}GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0x65:1792)\n", "gpu-init-failed"),
    # -- CUDA does not start ----------------------------------------------------------------
    ("failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\n", "uvm-stale-after-suspend"),
    (
        (
            "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\n"
            f"{SMI}Failed to initialize NVML: Driver/library version mismatch\n"
        ),
        "driver-library-mismatch",
    ),
    (
        (
            "nvidia-uvm: uvm_pmm_gpu.c:3405 devmem_alloc_pagemap[pid:2033] "
            "request_free_mem_region() err -34\n"
        ),
        "uvm-hmm-init-failure",
    ),
    (NOT_READY, "fabric-manager-missing"),
    (
        NOT_READY + "$ dpkg -l | grep nvidia\n"
        "ii  nvidia-driver-470        470.182.03-0ubuntu0.20.04.1  amd64  driver\n"
        "ii  nvidia-fabricmanager-470 470.161.03-0ubuntu0.20.04.1  amd64  Fabric Manager\n",
        "fabric-manager-version-mismatch",
    ),
    (
        (
            "nv-fabricmanager[32]: fabric manager NVIDIA GPU driver "
            "interface version 530.30.02 don't "
            "match with driver version 530.41.03. Please update with "
            "matching NVIDIA driver package.\n"
        ),
        "fabric-manager-version-mismatch",
    ),
    ("failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\n", ""),
    # -- containers -------------------------------------------------------------------------
    (
        (
            "docker: Error response from daemon: could not select device "
            'driver "" with capabilities: '
            "[[gpu]].\n"
        ),
        "container-toolkit-missing",
    ),
    (
        'failed to get sandbox runtime: no runtime for "nvidia" is configured\n',
        "container-toolkit-missing",
    ),
    (
        HOOK + "requirement error: unsatisfied condition: cuda>=12.8, please update your driver\n",
        "container-driver-too-old",
    ),
    (
        HOOK + "requirement error: unsatisfied condition: brand = tesla\n",
        "container-driver-too-old",
    ),
    (f"container$ nvidia-smi\n{UNKNOWN}", "container-device-cgroup-lost"),
    (f"root@9f2a6b1c0d3e:/workspace# nvidia-smi\n{UNKNOWN}", "container-device-cgroup-lost"),
    (
        (
            "container$ echo $NVIDIA_DRIVER_CAPABILITIES\ncompute,utility\n"
            f"container$ ffmpeg -i in.mp4 -c:v h264_nvenc out.mp4\n{ENCODER}"
        ),
        "container-driver-capabilities-missing",
    ),
    (ENCODER, ""),
    (
        (
            "$ docker run --rm --runtime=nvidia ubuntu:22.04 nvidia-smi\n"
            'docker: Error response from daemon: OCI runtime create failed: exec: "nvidia-smi": '
            "executable file not found in $PATH: unknown.\n"
        ),
        "container-visible-devices-unset",
    ),
    (
        HOOK + "container error: cgroup subsystem devices not found: unknown.\n",
        "cgroup-v2-unsupported",
    ),
    (
        "RuntimeError: DataLoader worker (pid 572) is killed by signal: Bus error.\n",
        "shm-too-small",
    ),
    ("RuntimeError: DataLoader worker (pid 572) is killed by signal: Killed.\n", ""),
    # -- WSL --------------------------------------------------------------------------------
    (f"wsl$ nvidia-smi\n{BLOCKED}", "wsl-gpu-in-tcc-mode"),
    (WSL + "E external/xla: Failed to dlopen libcuda.so\n", "wsl-libcuda-not-on-path"),
    ("E external/xla: Failed to dlopen libcuda.so\n", ""),
    (
        WSL
        + LISTED.format("NVIDIA GeForce GTX 1070")
        + "RuntimeError: CUDA error encountered: cudaErrorNotSupported operation not supported\n",
        "wsl-pascal-unsupported",
    ),
    (
        WSL
        + LISTED.format("NVIDIA GeForce RTX 3070")
        + "RuntimeError: CUDA error encountered: cudaErrorNotSupported operation not supported\n",
        "",
    ),
    # -- parts of GPUs, and their order -----------------------------------------------------
    (MIG + ">>> torch.cuda.device_count()\n1\n", "mig-single-instance"),
    (LISTED.format("NVIDIA A100-SXM4-40GB") + ">>> torch.cuda.device_count()\n1\n", ""),
    (
        (
            "$ nvidia-smi -L\nGPU 0: Quadro P620 (UUID: GPU-00000000-1111-2222-3333-444444444444)\n"
            "GPU 1: NVIDIA GeForce RTX 2080 Ti (UUID: GPU-00000000-1111-2222-3333-555555555555)\n"
            "ggml_cuda_init: found 2 CUDA devices:\n"
            "  Device 0: NVIDIA GeForce RTX 2080 Ti, compute capability 7.5, VMM: yes\n"
        ),
        "cuda-device-order",
    ),
    (VGPU, "vgpu-guest-host-mismatch"),
    # -- hardware ---------------------------------------------------------------------------
    (
        f"{NVRM}Xid (PCI:0000:41:00): 79, pid='<unknown>', GPU has fallen off the bus.\n",
        "gpu-lost",
    ),
    (
        (
            f"{NVRM}Xid (PCI:0000:9c:00): 48, An uncorrectable double bit error (DBE)\n"
            f"{NVRM}Xid (PCI:0000:9c:00): 63, Row Remapper: New row marked for remapping\n"
            f"{NVRM}Xid (PCI:0000:9c:00): 154, GPU recovery action changed to Drain and Reset\n"
        ),
        "ecc-row-remap",
    ),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered\n", "gpu-memory-errors"),
    (f"{NVRM}Xid (PCI:0000:1b:00): 74, NVLink: fatal error detected on link 6\n", "nvlink-error"),
    (f"{NVRM}Xid (PCI:0000:01:00): 31, pid=4321, name=python, MMU Fault\n", ""),
    (f"{NVRM}Xid (PCI:0000:01:00): 13, pid=4321, Graphics SM Warp Exception\n", ""),
    # -- what healthy machines print --------------------------------------------------------
    (
        (
            "nvidia: module license 'NVIDIA' taints kernel.\n"
            "nvidia: module verification failed: signature and/or required key "
            "missing - tainting kernel\n"
            f"{NVRM}loading NVIDIA UNIX x86_64 Kernel Module  535.154.05  Release Build\n"
        ),
        "",
    ),
    (
        "Unit nvidia-persistenced.service could not be found.\n",
        "",
    ),
]


@pytest.mark.parametrize(("text", "cause"), CASES)
def test_a_report_shows_its_cause_alone(text: str, cause: str) -> None:
    assert roots(text) == ({cause} if cause else set())


def test_a_failed_memory_is_told_under_the_row_that_waits() -> None:
    text = (
        f"{NVRM}Xid (PCI:0000:9c:00): 94, pid=1, Contained ECC error\n"
        f"{NVRM}Xid (PCI:0000:9c:00): 63, Row Remapper: New row marked for remapping\n"
    )
    told = {finding.rule: finding.because_of for finding in findings(text)}
    assert told["xid/memory"] is not None
    assert None in told.values()


def test_an_xid_is_told_in_the_words_of_the_catalogue() -> None:
    text = f"{NVRM}Xid (PCI:0000:41:00): 119, pid=1, Timeout waiting for RPC from GSP!\n"
    (finding,) = findings(text)
    row = MATRICES.catalogue("xid-codes").find({"code": "119"})[0]
    assert row["meaning"] in finding.title
