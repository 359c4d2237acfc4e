"""Driver, PyTorch build and GPU with the verdict that the vendors' own words give.

Each line was drawn from a source, not from the rules: the minimum drivers of NVIDIA's CUDA
Compatibility pages, and the lists of code that the builds carry. `docs/verdicts.md` shows it.
"""

from __future__ import annotations

from typing import NamedTuple


class Triple(NamedTuple):
    """One combination and what must be said of it."""

    driver: str
    torch: str
    gpu: str
    verdict: str
    """pass or fail."""
    cause: str
    """What a failing one fails for; empty for a passing one."""
    because: str
    arch: str = "x86_64"
    os: str = "ubuntu"


_TABLE = """
470.256.02 | 2.14.1+cu130 | Tesla T4                    | driver-too-old | CUDA 13.x needs R580
580.65.06  | 2.14.1+cu130 | Tesla T4                    |  | the first driver of CUDA 13
580.95.05  | 2.15.0+cu130 | NVIDIA H100 80GB HBM3       |  | CUDA 13.0 on its own branch
575.57.08  | 2.15.0+cu130 | NVIDIA H100 80GB HBM3       | driver-too-old | R575 is CUDA 12.9
580.95.05  | 2.15.0+cu132 | NVIDIA H100 80GB HBM3       |  | minor-version compatibility within 13.x
610.43.02  | 2.15.0+cu132 | NVIDIA H100 80GB HBM3       |  | CUDA 13.3 driver runs 13.2
570.133.20 | 2.8.0+cu129  | NVIDIA H100 80GB HBM3       |  | R570 is CUDA 12.8; 12.9 runs by minor-version compatibility
565.57.01  | 2.7.1+cu128  | NVIDIA A100-SXM4-80GB       |  | R565 is CUDA 12.7; 12.8 runs by minor-version compatibility
535.104.05 | 2.6.0+cu124  | NVIDIA A100-SXM4-80GB       |  | R535 is CUDA 12.2; 12.4 runs by minor-version compatibility
525.60.13  | 2.4.1+cu121  | NVIDIA GeForce RTX 3090     |  | the first driver of CUDA 12
525.53     | 2.4.1+cu121  | NVIDIA GeForce RTX 3090     | driver-too-old | older than 525.60.13, the minimum of CUDA 12.x
520.61.05  | 2.1.2+cu121  | NVIDIA A100-SXM4-40GB       | driver-too-old | R520 is CUDA 11.8
510.47.03  | 2.1.2+cu121  | NVIDIA A100-SXM4-40GB       | driver-too-old | R510 is CUDA 11.6
515.105.01 | 2.1.2+cu118  | NVIDIA A100-SXM4-40GB       |  | R515 is CUDA 11.7; 11.8 runs by minor-version compatibility
510.47.03  | 1.13.1+cu117 | NVIDIA A10                  |  | R510 is CUDA 11.6; 11.7 runs by minor-version compatibility
455.32.00  | 1.10.2+cu113 | NVIDIA A100-PCIE-40GB       |  | R455 is CUDA 11.1; 11.3 runs by minor-version compatibility
450.80.02  | 1.13.1+cu117 | Tesla V100-SXM2-32GB        |  | the first driver with minor-version compatibility of 11.x
450.51.06  | 1.13.1+cu117 | Tesla V100-SXM2-32GB        | driver-too-old | older than 450.80.02, the minimum of CUDA 11.x
440.33.01  | 1.10.2+cu102 | Tesla V100-SXM2-32GB        |  | the first driver of CUDA 10.2
418.226.00 | 1.10.2+cu102 | Tesla V100-SXM2-32GB        | driver-too-old | R418 is CUDA 10.1
450.248.02 | 2.4.1+cu118  | Tesla T4                    |  | R450 runs all of 11.x
418.226.00 | 2.4.1+cu118  | Tesla T4                    | driver-too-old | R418 is CUDA 10.1
595.58.03  | 2.4.1+cu118  | NVIDIA A100-SXM4-80GB       |  | drivers run programs of every older CUDA
615.36     | 1.13.1+cu117 | NVIDIA A100-SXM4-80GB       |  | drivers run programs of every older CUDA
615.36     | 2.15.0+cu130 | NVIDIA GeForce RTX 5090     |  | drivers run programs of every older CUDA
550.54.14  | 2.5.1+cu124  | NVIDIA L40S                 |  | CUDA 12.4 on its own branch
525.147.05 | 2.5.1+cu121  | NVIDIA L4                   |  | R525 is CUDA 12.0; 12.1 runs by minor-version compatibility
550.90.07  | 2.5.1+cu124  | NVIDIA H200                 |  | CUDA 12.4 on its own branch
570.124.04 | 2.6.0+cu124  | NVIDIA GeForce RTX 5090     | gpu-arch-too-new-for-build | no sm_120 before the cu128 builds
570.124.04 | 2.7.1+cu128  | NVIDIA GeForce RTX 5090     |  | cu128 builds carry sm_120
580.95.05  | 2.14.1+cu126 | NVIDIA GeForce RTX 5090     | gpu-arch-too-new-for-build | cu126 builds carry no sm_120
580.95.05  | 2.14.1+cu130 | NVIDIA RTX PRO 6000 Blackwell Workstation Edition |  | cu130 builds carry sm_120
570.133.20 | 2.7.1+cu126  | NVIDIA B200                 | gpu-arch-too-new-for-build | cu126 builds carry no sm_100
570.133.20 | 2.7.1+cu128  | NVIDIA B200                 |  | cu128 builds carry sm_100
580.95.05  | 2.9.1+cu130  | NVIDIA B300 SXM6 AC         |  | sm_100 code runs on 10.3, the same major
580.95.05  | 2.9.1+cu130  | NVIDIA GB10                 |  | sm_120 code runs on 12.1, the same major | aarch64
570.133.20 | 2.7.1+cu128  | NVIDIA GH200 480GB          |  | the aarch64 build of cu128 carries sm_90 | aarch64
535.104.05 | 2.0.1+cu117  | NVIDIA H100 80GB HBM3       | gpu-arch-too-new-for-build | cu117 builds carry no sm_90
535.104.05 | 2.0.1+cu118  | NVIDIA H100 80GB HBM3       |  | cu118 builds carry sm_90
535.104.05 | 1.13.1+cu117 | NVIDIA H100 80GB HBM3       | gpu-arch-too-new-for-build | cu117 builds carry no sm_90
535.104.05 | 1.13.1+cu117 | NVIDIA GeForce RTX 4090     |  | sm_86 code runs on 8.9, the same major
535.104.05 | 2.0.1+cu118  | NVIDIA GeForce RTX 4090     |  | sm_86 code runs on 8.9, the same major
470.82.01  | 1.10.2+cu102 | NVIDIA GeForce RTX 3090     | gpu-arch-too-new-for-build | CUDA 10.2 knows no sm_80
470.82.01  | 1.10.2+cu113 | NVIDIA GeForce RTX 3090     |  | cu113 builds carry sm_86
470.82.01  | 1.10.2+cu102 | NVIDIA A100-SXM4-40GB       | gpu-arch-too-new-for-build | CUDA 10.2 knows no sm_80
460.32.03  | 1.10.2+cu111 | NVIDIA GeForce RTX 2080 Ti  |  | R460 is CUDA 11.2
580.95.05  | 2.15.0+cu132 | NVIDIA GeForce RTX 2080 Ti  |  | 7.5 is the oldest capability of CUDA 13 builds
470.82.01  | 2.0.1+cu117  | NVIDIA RTX A6000            |  | R470 is CUDA 11.4; 11.7 runs by minor-version compatibility
465.19.01  | 2.0.1+cu118  | NVIDIA RTX A6000            |  | R465 is CUDA 11.3; 11.8 runs by minor-version compatibility
470.82.01  | 1.12.1+cu116 | NVIDIA GeForce GTX 1650     |  | R470 is CUDA 11.4; 11.6 runs by minor-version compatibility
580.95.05  | 2.14.1+cu126 | NVIDIA GeForce GTX 1080 Ti  |  | cu126 builds keep Maxwell to Volta
580.95.05  | 2.14.1+cu130 | NVIDIA GeForce GTX 1080 Ti  | gpu-arch-too-old-for-build | CUDA 13 builds begin at 7.5
570.124.04 | 2.8.0+cu128  | NVIDIA GeForce GTX 1080 Ti  | gpu-arch-too-old-for-build | cu128 builds of 2.8 begin at 7.0 or 7.5
580.95.05  | 2.14.1+cu126 | Tesla V100-SXM2-32GB        |  | cu126 builds keep Maxwell to Volta
580.95.05  | 2.14.1+cu130 | Tesla V100-SXM2-32GB        | gpu-arch-too-old-for-build | CUDA 13 builds begin at 7.5
535.104.05 | 2.4.1+cu121  | Tesla V100-SXM2-32GB        |  | sm_70 is in every build of CUDA 12.1
580.95.05  | 2.8.0+cu126  | NVIDIA TITAN V              |  | cu126 builds keep Maxwell to Volta
535.104.05 | 2.6.0+cu124  | Tesla P100-PCIE-16GB        |  | sm_60 is in every build of CUDA 12.4
535.104.05 | 2.3.1+cu118  | Quadro P2000                |  | sm_60 code runs on 6.1, the same major
535.309.01 | 2.6.0+cu124  | NVIDIA GeForce GTX 980      |  | sm_50 code runs on 5.2, the same major
580.95.05  | 2.14.1+cu130 | NVIDIA GeForce GTX 980      | gpu-arch-too-old-for-build | CUDA 13 builds begin at 7.5
470.256.02 | 1.12.1+cu113 | Tesla K80                   |  | the build carries sm_37
470.256.02 | 2.4.1+cu121  | Tesla K80                   | driver-too-old | CUDA 12.x needs 525.60.13, which no longer knows Kepler
580.95.05  | 2.4.1+cpu    | NVIDIA A100-SXM4-80GB       | cpu-only-build | a build without CUDA beside a GPU
576.02     | 2.7.1+cu128  | NVIDIA GeForce RTX 5080     |  | the Windows build of cu128 carries sm_120 | x86_64 | windows
535.104.05 | 2.14.1+cu126 | NVIDIA GeForce RTX 3050     |  | R535 is CUDA 12.2; 12.6 runs by minor-version compatibility
"""


def _read(line: str) -> Triple:
    cells = [cell.strip() for cell in line.split("|")]
    driver, torch, gpu, cause, because, *more = cells
    return Triple(driver, torch, gpu, "fail" if cause else "pass", cause, because, *more)


TRIPLES = [_read(line) for line in _TABLE.strip().splitlines()]
