"""Outputs of `nvidia-smi -q` of several generations, for tests."""

from __future__ import annotations

Q_375 = """\
==============NVSMI LOG==============

Timestamp                           : Mon Jan  1 12:00:00 2018
Driver Version                      : 375.82

Attached GPUs                       : 1
GPU 0000:01:00.0
    Product Name                    : Quadro M1000M
    Product Brand                   : Quadro
    Persistence Mode                : Disabled
    Driver Model
        Current                     : N/A
        Pending                     : N/A
    Serial Number                   : N/A
    GPU UUID                        : GPU-00000000-0000-0000-0000-000000000000
    VBIOS Version                   : 82.07.9D.00.1F
    PCI
        Bus                         : 0x01
        Device                      : 0x00
        Domain                      : 0x0000
        Device Id                   : 0x13B110DE
        Bus Id                      : 0000:01:00.0
        Sub System Id               : 0x22301028
        GPU Link Info
            PCIe Generation
                Max                 : 3
                Current             : 1
            Link Width
                Max                 : 16x
                Current             : 8x
        Replays since reset         : 0
    Fan Speed                       : N/A
    Performance State               : P8
    Clocks Throttle Reasons
        Idle                        : Active
        Applications Clocks Setting : Not Active
        SW Power Cap                : Not Active
        HW Slowdown                 : Not Active
        Sync Boost                  : Not Active
    FB Memory Usage
        Total                       : 4041 MiB
        Used                        : 263 MiB
        Free                        : 3778 MiB
    Compute Mode                    : Exclusive_Process
    Utilization
        Gpu                         : 0 %
        Memory                      : 0 %
    Ecc Mode
        Current                     : N/A
        Pending                     : N/A
    ECC Errors
        Volatile
            Single Bit
                Device Memory       : N/A
                Total               : N/A
            Double Bit
                Device Memory       : N/A
                Total               : N/A
    Temperature
        GPU Current Temp            : 44 C
        GPU Shutdown Temp           : 101 C
    Power Readings
        Power Management            : N/A
        Power Draw                  : N/A
        Power Limit                 : N/A
    Clocks
        Graphics                    : 135 MHz
        SM                          : 135 MHz
        Memory                      : 405 MHz
    Max Clocks
        Graphics                    : 1124 MHz
        SM                          : 1124 MHz
        Memory                      : 2505 MHz
    Processes
        Process ID                  : 2023
            Type                    : G
            Name                    : /usr/bin/X : not a key
            Used GPU Memory         : 120 MiB
"""

Q_470_MIG = """\
==============NVSMI LOG==============

Timestamp                                 : Tue Mar  8 09:12:44 2022
Driver Version                            : 470.57.02
CUDA Version                              : 11.4

Attached GPUs                             : 1
GPU 00000000:0F:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
        GPU Instance ID                   : 1
        Compute Instance ID               : 0
        Device Attributes
            Shared
                Multiprocessor count      : 42
        ECC Errors
            Volatile
                SRAM Uncorrectable        : 0
        FB Memory Usage
            Total                         : 20096 MiB
            Used                          : 11 MiB
            Free                          : 20085 MiB
    MIG Device
        Index                             : 1
        GPU Instance ID                   : 5
        Compute Instance ID               : 0
        FB Memory Usage
            Total                         : 9984 MiB
            Used                          : 5 MiB
            Free                          : 9979 MiB
    Performance State                     : P0
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Display Clock Setting             : Not Active
    FB Memory Usage
        Total                             : 40536 MiB
        Used                              : 16 MiB
        Free                              : 40520 MiB
    ECC Mode
        Current                           : Enabled
        Pending                           : Disabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable            : 1
            DRAM Correctable              : 2
            DRAM Uncorrectable            : 3
        Aggregate
            SRAM Uncorrectable            : 90
            DRAM Uncorrectable            : 90
    Remapped Rows
        Correctable Error                 : 1
        Uncorrectable Error               : 2
        Pending                           : Yes
        Remapping Failure Occurred        : No
        Bank Remap Availability Histogram
            Max                           : 639 bank(s)
            None                          : 0 bank(s)
    Power Readings
        Power Management                  : Supported
        Power Draw                        : 52.31 W
        Power Limit                       : 400.00 W
        Default Power Limit               : 400.00 W
        Enforced Power Limit              : 350.00 W
        Max Power Limit                   : 400.00 W
    Processes                             : None
"""

Q_610 = """\
==============NVSMI LOG==============

Timestamp                                              : Sun Sep  6 08:21:38 2026
Driver Version                                         : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
CUDA Version                                           : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]
KMD Version                                            : 610.57.04
CUDA UMD Version                                       : 13.3

Attached GPUs                                          : 2
GPU 00000000:01:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Driver Model
        Current                                        : N/A
    GPU Recovery Action                                : Drain and Reset
    GSP Firmware Version                               : 610.57.04
    PCI
        Device Id                                      : 0x233010DE
        Bus Id                                         : 00000000:01:00.0
        Sub System Id                                  : 0x16C110DE
        GPU Link Info
            PCIe Generation
                Max                                    : 5
                Current                                : 4
                Device Current                         : 4
                Device Max                             : 5
                Host Max                               : 5
    Clocks Event Reasons
        Idle                                           : Not Active
        SW Power Cap                                   : Active
    Clocks Event Reasons Counters
        SW Power Capping                               : 1202176 us
    BAR1 Memory Usage
        Total                                          : 131072 MiB
    Utilization
        GPU                                            : 93 %
    Temperature
        GPU Current Temp                               : 79 C
    GPU Power Readings
        Average Power Draw                             : N/A
        Instantaneous Power Draw                       : 78.75 W
        Current Power Limit                            : 500.00 W
        Max Power Limit                                : 700.00 W
    Module Power Readings
        Max Power Limit                                : 1000.00 W
    Fabric
        State                                          : In Progress
        Status                                         : N/A
    Processes
        GPU instance ID                                : N/A
        Compute instance ID                            : N/A
        Process ID                                     : 31
            Type                                       : C
        GPU instance ID                                : N/A
        Compute instance ID                            : N/A
        Process ID                                     : 32
            Type                                       : C
    Capabilities
        EGM                                            : disabled

GPU 00000000:02:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Temperature
        GPU Current Temp                               : Unknown Error
"""  # noqa: E501

Q_WINDOWS_CLOCK = """\

==============NVSMI LOG==============

Timestamp                                 : Wed Aug 26 15:47:19 2026
Driver Version                            : 552.22
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:06:00.0
    Clocks
        Graphics                          : 210 MHz
        SM                                : 210 MHz
        Memory                            : 405 MHz
    Max Clocks
        SM                                : 2100 MHz
        Memory                            : 3200 MHz

GPU 00000000:07:00.0
    Max Clocks
        SM                                : 875 MHz
"""

SAMPLES = (Q_375, Q_470_MIG, Q_610, Q_WINDOWS_CLOCK)
