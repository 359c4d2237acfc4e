"""Keep the driver's own software from changing the machine that it is asked about.

Where no nvidia module is loaded, NVML and nvidia-smi make /dev/nvidiactl when root runs them, and
start nvidia-modprobe, which is setuid root and loads the module, whoever runs them.
"""

from __future__ import annotations

from envaudit.host import Host

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_SYS_MODULE, _MKNOD = 16, 27


def restrain(host: Host) -> None:
    """Give up, for this process and what it starts, making device nodes and loading modules.

    Does nothing on a machine that is not the live one, and nothing where the module is loaded:
    there the nodes are as the driver keeps them, and without them it could not be asked.
    """
    if not host.live or host.isdir("/sys/module/nvidia"):
        return
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable; the first three numbers hold capabilities 0 to 31.
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) != 0:
        return
    for capability in (_SYS_MODULE, _MKNOD):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        for number in range(3):
            sets[number] &= ~(1 << capability) & 0xFFFFFFFF
    libc.capset(header, sets)
