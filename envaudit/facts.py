"""The catalogue of fact names: the one vocabulary of probes, importers, matrices and outputs.

A name is lower case with dots, general to special; `*` stands for an instance. Sizes are in
bytes, power in W, clocks in MHz, temperatures in degrees C, rates in bytes/s or FLOP/s, times
in s, unless the name ends in a unit. A version is stored as the text that was read.

Stability says what a difference between two looks means: `static` is hardware, `config` moves
only when somebody changes it, `state` moves by itself, `measure` was measured by a run of ours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from envaudit.model import covers

Kind = Literal["version", "text", "number", "flag", "list"]
Stability = Literal["static", "config", "state", "measure"]


class FactSpec(NamedTuple):
    """What one name (or pattern of names) stands for."""

    pattern: str
    kind: Kind
    stability: Stability
    meaning: str
    identity: bool = False
    """Tells this machine from an equal one (serials, names, paths): no part of the fingerprint."""


_KINDS: dict[str, Kind] = {"v": "version", "t": "text", "n": "number", "f": "flag", "l": "list"}
_STABILITIES: dict[str, Stability] = {"S": "static", "C": "config", "~": "state", "M": "measure"}

# One line a name: kind (v t n f l), stability (S static, C config, ~ state, M measure; a
# following ! marks identity), name, meaning in the words the vendor's tools use.
_TABLE = """
t C  os.id                         distribution id (ID in os-release)
v C  os.version                    distribution version (VERSION_ID in os-release)
t C  os.name                       distribution in words (PRETTY_NAME in os-release)
t S  os.arch                       machine architecture (uname -m)
v C  os.build                      OS build, of Windows where a WSL guest can tell
t C  os.libc.name                  C library: glibc or musl
v C  os.libc.version               GNU C library (ldd --version); absent where it is musl
v C  os.libstdcxx.version          highest GLIBCXX symbol version of the libstdc++ that would be loaded
t C  os.virtualization             none, kvm, vmware, microsoft, xen, ...
f C  os.wsl                        inside Windows Subsystem for Linux
v C  wsl.version                   1 or 2
v C  wsl.release                   release of WSL itself (wsl --version)
t C  kernel.release                running kernel (uname -r)
v C  kernel.version                comparable part of the running kernel's release
t C  kernel.compiler               compiler that built the running kernel (/proc/version)
t C! kernel.cmdline                kernel command line without the root device
l ~! kernel.log.xids               Xid errors in the kernel log: PCI address and code
l ~! kernel.log.sxids              NVSwitch errors in the kernel log: PCI address and code
t C  kernel.lockdown               none, integrity or confidentiality
n ~  kernel.taint                  taint bits of the running kernel
l C  kernel.installed              kernels on disk
t C  kernel.default                kernel that boots next, where that can be told
f C  kernel.module.*.loaded        kernel module is loaded (/proc/modules)
v C  kernel.module.*.version       version of the loaded kernel module (/sys/module/*/version)
t ~! boot.id                       identity of this boot
t ~! boot.time                     when this boot began, RFC 3339 UTC
t C  boot.secure_boot              enabled, disabled, or unsupported where there is no UEFI
f ~  boot.reboot_required          the package manager asks for a reboot
v C  firmware.bios.version         BIOS/UEFI version (DMI)
t C  firmware.bios.date            BIOS/UEFI date (DMI)
t S  firmware.product              machine product name (DMI)
v C  cpu.microcode                 microcode revision
v C  driver.version                driver release in use (nvidia-smi "Driver Version", since 610 "KMD Version")
v C  driver.cuda.version           newest CUDA this driver supports (nvidia-smi "CUDA Version", since 610 "CUDA UMD Version")
v C  driver.module.version         loaded nvidia kernel module
t C  driver.module.flavor          flavour of the loaded module: open or proprietary
f C  driver.module.loaded          the nvidia kernel module is loaded
t C  driver.module.compiler        compiler that built the loaded module (/proc/driver/nvidia/version)
t C  driver.module.signer          signer of the module on disk
v C  driver.module.on_disk         module that the next load or boot would bring for the running kernel
t C  driver.module.on_disk_flavor  flavour of the module on disk: open or proprietary
l C  driver.module.kernels         installed kernels that have an nvidia module
t C  driver.param.*                parameter of the loaded nvidia module
v C  driver.library.version        user-mode driver libraries the loader would take
t C! driver.libcuda.path           real path behind libcuda.so.1
v C  driver.libcuda.version        version of that libcuda
t C! driver.libnvml.path           real path behind libnvidia-ml.so.1
v C  driver.libnvml.version        version of that libnvidia-ml
l C  driver.library.copies         every libcuda found: path and version
f C  driver.libcuda.stub           the libcuda the loader would take is the toolkit's link-time stub
v C  driver.compat.version         cuda-compat libcuda on the loader path
t C! driver.compat.path            where that cuda-compat libcuda lies
v C  driver.package.version        release of the driver that OS packages have installed
v C  driver.compat.on_disk         cuda-compat libcuda that lies in a toolkit's compat folder
t C  driver.install_method         apt, dnf, zypper, pacman, apk, runfile, container-mount, wsl, ...
v ~  driver.installer.version      driver release that a log of nvidia-installer is about
t ~  driver.installer.kernel       kernel that this log built the module for
f C  driver.persistenced.active    nvidia-persistenced runs
v C  driver.gsp.version            GSP firmware in use
l C  driver.gsp.on_disk            driver versions whose GSP firmware lies on disk
l C  driver.device_nodes           NVIDIA device nodes under /dev
l C  driver.blacklisted            modules that modprobe configuration keeps from loading, of those that matter
t C  dkms.nvidia.status            state of the nvidia DKMS module for the running kernel
f C  dkms.installed                DKMS is installed
l C  dkms.nvidia.kernels           kernels for which DKMS has built an nvidia module
v C  dkms.nvidia.version           the nvidia driver that DKMS has, where it has one
l C  dkms.nvidia.failed_kernels    kernels for which DKMS could not build the nvidia module
v C  fabricmanager.version         NVIDIA Fabric Manager
f ~  fabricmanager.active          the fabric manager service runs
n S  nvswitch.count                NVSwitches on the PCI bus
v C  vgpu.host.version             driver of the vGPU host (its vGPU manager)
v C  vgpu.guest.version            driver of the vGPU guest
t C  nvml.status                   "ok", or the error as NVML prints it
v C  nvml.version                  NVML library version
t C  smi.status                    "ok", or the error as nvidia-smi prints it
v C  smi.version                   version in nvidia-smi's own heading
n S  gpu.count                     GPUs that NVML sees
l S! gpu.driver_bound              PCI functions of vendor 10de with the kernel driver bound to each
t S  gpu.*.name                    product name
t S! gpu.*.uuid                    UUID
t S! gpu.*.serial                  board serial
t S  gpu.*.pci.id                  PCI device and subsystem id
t S! gpu.*.pci.address             PCI bus address
v C  gpu.*.vbios.version           video BIOS
v S  gpu.*.compute_capability      compute capability
n S  gpu.*.memory.total            memory, bytes
n ~  gpu.*.memory.used             memory in use, bytes
n ~  gpu.*.memory.free             free memory, bytes
n S  gpu.*.bar1.total              BAR1 aperture, bytes
n ~  gpu.*.pcie.gen.current        PCIe generation now (idle links downtrain)
n S  gpu.*.pcie.gen.max            PCIe generation that GPU and slot together can do
n S  gpu.*.pcie.gen.device_max     PCIe generation the GPU can do
n ~  gpu.*.pcie.width.current      PCIe lanes now
n S  gpu.*.pcie.width.max          PCIe lanes the link can do
n ~  gpu.*.pcie.replays            PCIe replay counter
n ~  gpu.*.power.draw              power draw, W
n C  gpu.*.power.limit             power limit in force, W
n S  gpu.*.power.limit_default     default power limit, W
n S  gpu.*.power.limit_max         highest power limit that can be set, W
n ~  gpu.*.clocks.sm.current       SM clock, MHz
n C  gpu.*.clocks.sm.max           highest SM clock, MHz
n ~  gpu.*.clocks.mem.current      memory clock, MHz
n C  gpu.*.clocks.mem.max          highest memory clock, MHz
l ~  gpu.*.clocks.event_reasons    reasons that hold the clocks down now
t ~  gpu.*.pstate                  performance state, P0 to P15
n M  gpu.*.throttle.*              share of the measured window spent throttled for this reason
n ~  gpu.*.temperature             GPU temperature, degrees C
n ~  gpu.*.utilization             share of time a kernel ran, percent
n ~  gpu.*.processes               processes that use the GPU
n ~  gpu.*.processes.foreign       processes of other users that use the GPU
t C  gpu.*.ecc.current             ECC mode: enabled or disabled
t C  gpu.*.ecc.pending             ECC mode after the next reboot
n ~  gpu.*.ecc.uncorrected         uncorrected memory errors since the driver was loaded
n ~  gpu.*.remapped_rows.correctable    memory rows remapped for correctable errors
n ~  gpu.*.remapped_rows.uncorrectable  memory rows remapped for uncorrectable errors
f ~  gpu.*.remapped_rows.pending   a row remap waits for a GPU reset
f ~  gpu.*.remapped_rows.failed    a row remap failed
t ~  gpu.*.recovery_action         what the driver asks for: none, reset, reboot, ...
t C  gpu.*.mig.current             MIG mode: enabled or disabled
t C  gpu.*.mig.pending             MIG mode after the next reset
l C  gpu.*.mig.instances           MIG instances
t C  gpu.*.compute_mode            default, exclusive_process or prohibited
t C  gpu.*.persistence_mode        enabled or disabled
t C  gpu.*.driver_model            Windows driver model: WDDM, TCC or MCDM
n ~  gpu.*.nvlink.active           NVLinks that are up
n S  gpu.*.nvlink.total            NVLinks the GPU has
t ~  gpu.*.fabric.state            NVLink fabric registration: not_started, in_progress, completed
t ~  gpu.*.fabric.status           result of that registration
t S  gpu.*.link.*                  way to another GPU: NV4, PIX, PXB, PHB, NODE or SYS (nvidia-smi topo -m)
t C  gpu.*.p2p.*                   peer access to another GPU: ok or the reason against
n S  gpu.*.numa_node               NUMA node the GPU hangs on
t ~  gpu.*.xid                     last Xid error of the kernel log
t ~  gpu.*.status                  "ok", or the error that NVML gives for this GPU
v C  cuda.toolkit.version          default CUDA toolkit (nvcc --version, version.json)
l C  cuda.toolkits                 every toolkit found: path and version
t C! cuda.nvcc.path                nvcc that a build would run
v C  cuda.nvcc.version             release of that nvcc
t C! cuda.home                     toolkit that a build would take, and what chose it
v C  cuda.runtime.version          libcudart the loader would take for the target
v C  cudnn.version                 cuDNN the loader would take for the target
v C  nccl.version                  NCCL the loader would take for the target
v C  cublas.version                cuBLAS the loader would take for the target
v C  cusparse.version              cuSPARSE the loader would take for the target
v C  nvrtc.version                 NVRTC the loader would take for the target
v C  nvjitlink.version             nvJitLink the loader would take for the target
v C  tensorrt.version              TensorRT the loader would take for the target
v ~  cudnn.wanted.version         major version of cuDNN that a program looked for and did not find
l C  cudnn.installs                every cuDNN found: path, version, found via
l C  nccl.installs                 every NCCL found: path, version, found via
l C  libstdcxx.installs             every libstdc++ found: path, highest GLIBCXX symbol version, found via
l C  cuda.runtime.installs         every libcudart found: path, version, found via
t C! lib.*.path                    file the loader would take for this soname
v C  lib.*.version                 its version
t C  lib.*.via                     how the loader finds it: rpath, runpath, LD_LIBRARY_PATH, ldconfig, default, preload
l ~  loader.missing                shared libraries that a program says it could not find
l ~  loader.opened                 shared libraries that a program's log says were opened
t C! lib.*.for                     the library of the target that asks for it
v C  gcc.version                   gcc
v C  gcc.major                     major version of gcc
v C  clang.version                 clang
v C  nvcc.host_compiler.version    host compiler that nvcc would call
v C  nvcc.host_compiler.gcc        the same, where it is gcc
v C  nvcc.host_compiler.clang      the same, where it is clang
v C  cmake.version                 CMake
t C! env.*                         environment variable that matters to the GPU stack
v C  python.version                target interpreter
t C  python.tag                    major and minor as wheel names have them: 312 in cp312
t C  python.implementation         CPython, PyPy, ...
t C! python.executable             path of the target interpreter
t C! python.prefix                 its prefix
t C  python.environment            venv, conda, system, ...
f C  python.free_threaded          built without the global interpreter lock
t C  python.chosen_by              what made this interpreter the target
f C  python.interpreter            the target is a Python interpreter
t C  python.status                 "ok", or why the target interpreter did not answer
l C! python.path                   entries of its sys.path that can hold packages
v C  dist.*.version                distribution in the target
t C  dist.*.installer              what installed it
f C  dist.*.editable               installed in editable mode
t C  dist.*.tag                    wheel tag
t C  dist.*.origin                 URL or path it was installed from, without secrets
v C  dist.*.release                the same without local part (+cu121) and epoch
v C  dist.*.for_torch              torch minor that its version names (+cu118torch2.2, +pt21cu121)
v C  dist.*.for_cuda               CUDA that its version names
t C  dist.*.for_cxx11_abi          C++11 ABI that its version names: true or false
l C  dist.all                      every distribution in the target
l C! dist.duplicates               distributions found more than once on the path: name, version, folder
l C  python.conflicts              requirements of GPU-stack distributions that are not met
v C  conda.*.version               conda package
t C  conda.*.build                 its build string
t C  conda.*.channel               its channel
v C  *.cuda.version                CUDA the framework was compiled for; absent in a CPU-only build
v C  torch.version                 PyTorch build
v C  torch.hip.version             ROCm the build is for
v C  *.cudnn.version               cuDNN the framework was compiled with
v C  *.built.torch.version         PyTorch that an extension was compiled against
v C  *.built.cuda.version          CUDA toolkit that an extension was compiled with
v C  *.built.nvcc.version          nvcc that an extension was compiled with
v C  *.built.python.version        Python that an extension was compiled for
l C  *.built.ops                   operations that were compiled beforehand (ds_report)
v C  torch.nccl.version            NCCL the build pins
l C  *.arch_list                   GPU code in the build: sm_XX native, compute_XX PTX
f C  torch.cxx11_abi               built with the C++11 ABI
t S  gpu.*.pci.device              PCI device id, four hexadecimal digits
t S  gpu.*.pci.board              device and subsystem ids as lists of supported products have them: 20F1:10DE:145F
t S  gpu.*.segment                 market segment: datacenter, workstation, geforce, jetson
f S  gpu.*.open_module_only        the GPU works with the open kernel module only
t S  gpu.*.sm_target               compute capability as a target of nvcc, such as sm_90
t C  torch.build_tag               build tag of the PyTorch version, such as cu130
v C  *.ngc_release                 release of the NVIDIA container that the framework's build comes from, such as 24.11
f ~  *.available                   the framework says that it can use a GPU (only when asked to import it)
t ~  *.error                       what it said instead
t ~  torch.import                  ok, or how the import failed
v C  tensorflow.version            TensorFlow build
v C  jax.version                   JAX
v C  jaxlib.version                jaxlib
v C  cupy.version                  CuPy
v C  onnxruntime.version           ONNX Runtime
v C  ollama.version                Ollama
v C  paddle.version                PaddlePaddle
t C  container.runtime             docker, podman, containerd, apptainer, kubernetes, ...
t C  container.image               image, where the container can tell
v C  container.toolkit.version     NVIDIA Container Toolkit
v C  container.cli.version         nvidia-container-cli (libnvidia-container)
v C  docker.version                Docker engine
l C  docker.runtimes               OCI runtimes that Docker knows
t C  docker.default_runtime        runtime that Docker takes where none is asked for
f C  docker.desktop                Docker Desktop, whose containers run in a virtual machine
f C  docker.rootless               the Docker daemon runs without root
t C  container.visible_devices     NVIDIA_VISIBLE_DEVICES
t C  container.driver_capabilities NVIDIA_DRIVER_CAPABILITIES
l C  container.cdi                 CDI specification files
n C  cgroup.version                1 or 2
n C  cgroup.cpu.quota_cores        CPU quota, in cores
n ~  cgroup.cpu.throttled_ratio    share of periods in which the CPU quota throttled us
n C  cgroup.memory.max             memory limit, bytes
t C! host.name                     host name
t S  host.cpu.model                CPU model
t S  host.cpu.vendor               CPU vendor
n S  host.cpu.count                logical CPUs of the machine
n C  host.cpu.usable               logical CPUs this process may use
t C  host.cpu.governor             frequency governor; mixed where CPUs differ
t C  host.cpu.frequency_driver     cpufreq driver (intel_pstate, amd-pstate-epp, acpi-cpufreq, ...)
t C  host.cpu.energy_preference    energy/performance preference; mixed where CPUs differ
f C  host.cpu.turbo                turbo or boost allowed
n ~  host.cpu.throttled            thermal throttle events since boot
n S  host.numa.nodes               NUMA nodes
n S  host.memory.total             memory, bytes
n ~  host.memory.available         available memory, bytes
n ~  host.swap.used                swap in use, bytes
n ~  host.load.1m                  load average of one minute
n ~  host.psi.cpu                  pressure stall, some, 10 s average, percent
n ~  host.psi.memory               pressure stall, some, 10 s average, percent
n ~  host.psi.io                   pressure stall, some, 10 s average, percent
n C  host.shm.size                 size of /dev/shm, bytes
n ~  host.disk.*.free_ratio        free share of the file system
n ~  host.disk.*.free              free bytes of the file system
t C  host.clocksource              kernel clock source
t C  host.thp                      transparent huge pages: always, madvise or never
n C  host.limits.memlock           locked-memory limit, bytes; -1 for unlimited
n C  host.limits.nofile            open-files limit; -1 for unlimited
n C  host.limits.core              core-file limit, bytes; -1 for unlimited
n S  pci.gpu.count                 NVIDIA display functions on the PCI bus, whatever the driver
t S! pci.gpu.*.address             bus address of such a function
t S  pci.gpu.*.id                  its vendor and device id (lspci -nn)
t C  pci.gpu.*.driver              kernel driver bound to it (lspci -k); "none" when there is none
f C  pci.acs.enabled               PCIe Access Control Services redirect is on for a bridge above a GPU
t C  host.iommu                    none, passthrough or translated
f ~  service.*.active              service runs
v C  pkg.*.version                 OS package of the GPU stack or the kernel
f C  pkg.*.held                    held back from upgrades
t ~  smoke.*.status                ok, wrong_result, cpu_fallback, no_device, failed, timed_out, skipped
t ~  smoke.*.detail                more on that
n M  perf.*                        measurement, unit at the end of the name
t ~  signal.*                       line of a report or log that a signature knows
t ~  signal.*.*                     what that line says, by the signature's groups
l ~  signal.*.*.all                 every different value of it in the report
t ~  scope.*.*                      what a report says of one place: host, container, wsl, windows
l ~  report.contradictions          values that differ within a report
t ~  report.unread                  how much of a pasted report was not understood
t ~  report.cut                     why a pasted report is not all that there was
t ~  assumed.*                      what whatif or recommend takes a component to be
n C  expected.gpu.count            GPUs this machine is said to have (--expect-gpus)
t ~  probe.*.status                how a probe of this look ended
t ~  probe.*.detail                more on that
"""


def _read_table(table: str) -> tuple[FactSpec, ...]:
    specs = []
    for line in table.strip().splitlines():
        kind, flags, pattern, meaning = line.split(None, 3)
        specs.append(
            FactSpec(pattern, _KINDS[kind], _STABILITIES[flags[0]], meaning.strip(), "!" in flags)
        )
    return tuple(specs)


CATALOGUE: tuple[FactSpec, ...] = _read_table(_TABLE)
"""Every name with its meaning, in reading order. A more special pattern stands before or after
a general one; `spec_of` takes the one with the longest fixed text."""


def _root(pattern: str) -> str:
    return pattern.partition(".")[0]


_EXACT = {spec.pattern: spec for spec in CATALOGUE if "*" not in spec.pattern}
_PATTERNS = sorted(
    (spec for spec in CATALOGUE if "*" in spec.pattern),
    key=lambda spec: len(spec.pattern.replace("*", "")),
    reverse=True,
)
_BY_PATTERN = {spec.pattern: spec for spec in _PATTERNS}
_OF_ANY_ROOT = [spec for spec in _PATTERNS if spec.pattern.startswith("*")]
_BY_ROOT = {
    root: [
        spec for spec in _PATTERNS if spec.pattern.startswith("*") or root == _root(spec.pattern)
    ]
    for root in {_root(spec.pattern) for spec in _PATTERNS}
}
"""Patterns that can cover a name, by its first part: a name is looked up for every fact."""


@lru_cache(maxsize=4096)
def spec_of(name: str) -> FactSpec | None:
    """What the catalogue says of a fact name; None for a name that it does not have."""
    exact = _EXACT.get(name)
    if exact is not None:
        return exact
    parts = name.split(".", 2)
    if len(parts) == 3:  # gpu.0.name: nothing can be more special than gpu.*.name
        special = _BY_PATTERN.get(f"{parts[0]}.*.{parts[2]}")
        if special is not None:
            return special
    near = _BY_ROOT.get(name.partition(".")[0], _OF_ANY_ROOT)
    return next((spec for spec in near if covers(spec.pattern, name)), None)
