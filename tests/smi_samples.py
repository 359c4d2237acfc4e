"""Outputs of nvidia-smi for tests: tables of several generations, and XML built piece by piece."""

from __future__ import annotations

FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running."
)
MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183\n"
)

# 384: no CUDA version, no MIG column.
TABLE_384 = """\
Sat Jul 14 14:57:15 2018
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.111                Driver Version: 384.111                   |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla K80           Off  | 00000000:00:04.0 Off |                    0 |
| N/A   31C    P0    62W / 149W |      0MiB / 11439MiB |    100%   E. Process |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|    0     21388    C     nvidia-cuda-mps-server                        10MiB |
+-----------------------------------------------------------------------------+
"""

TABLE_580 = """\
Tue Dec  1 05:19:48 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1A:00.0 Off |                    0 |
| N/A   34C    P0             95W /  700W |       4MiB /  81559MiB |      7%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GeForce RTX 5070 ...    Off |   00000000:1B:00.0  On |                  N/A |
|  0%   51C    P8              7W /   N/A |     273MiB /  12227MiB |      2%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    1   N/A  N/A            1503      G   /usr/lib/xorg/Xorg                       21MiB |
|    1   N/A  N/A            2210    C+G   ...ing a name with C and a blank         90MiB |
+-----------------------------------------------------------------------------------------+
"""

# 610 and later: other words in the heading, another line below it.
TABLE_615 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 615.71.09              KMD Version: 615.71.09     CUDA UMD Version: 13.4     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA L4                      On  |   00000000:09:00.0 Off |                    0 |
| N/A   47C    P8             17W /   72W |       0MiB /  23034MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""

# Windows: the driver model in place of the persistence mode.
TABLE_WINDOWS = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 528.24       Driver Version: 528.24       CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name            TCC/WDDM | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  Tesla P4           TCC   | 00000000:01:00.0 Off |                  Off |
| N/A   35C    P8     6W /  75W |      1MiB /  7680MiB |      0%   Prohibited |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
"""

# A GPU in MIG mode, one that does not answer, and a Jetson's that has next to nothing.
TABLE_SICK = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.183.06             Driver Version: 535.183.06   CUDA Version: ERR!     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA A100-PCIE-40GB          On  | 00000000:21:00.0 Off |                   On |
| N/A   28C    P0              31W / 250W |     50MiB / 40960MiB |     N/A      Default |
|                                         |                      |             Enabled* |
+-----------------------------------------+----------------------+----------------------+
|   1  ERR!                           On  | 00000000:83:00.0 Off |                 ERR! |
|ERR!  ERR! ERR!             ERR! /  ERR! |      0MiB / 46068MiB |    ERR!      Default |
|                                         |                      |                 ERR! |
+-----------------------------------------+----------------------+----------------------+
|   2  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A  N/A  N/A               N/A /  N/A  | Not Supported        |     N/A          N/A |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+

+---------------------------------------------------------------------------------------+
| MIG devices:                                                                          |
+------------------+--------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                   Memory-Usage |        Vol|      Shared           |
|      ID  ID  Dev |                     BAR1-Usage | SM     Unc| CE ENC DEC OFA JPG    |
|                  |                                |        ECC|                       |
|==================+================================+===========+=======================|
|  0    3   0   0  |              12MiB /  9856MiB  | 14      0 |  1   0    1    0    0 |
|                  |               0MiB / 16383MiB  |           |                       |
+------------------+--------------------------------+-----------+-----------------------+
|  0    4   0   1  |              12MiB / 19968MiB  | 42      0 |  1   0    1    0    0 |
|                  |               0MiB / 16383MiB  |           |                       |
+------------------+--------------------------------+-----------+-----------------------+

+---------------------------------------------------------------------------------------+
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|        ID   ID                                                             Usage      |
|=======================================================================================|
|  No running processes found                                                           |
+---------------------------------------------------------------------------------------+
WARNING: infoROM is corrupted at gpu 0000:21:00.0
"""

TABLES = (TABLE_384, TABLE_580, TABLE_615, TABLE_WINDOWS, TABLE_SICK)

LISTED = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-4000-8000-000000000000)
GPU 1: NVIDIA GeForce RTX 5070 Ti Laptop GPU (UUID: GPU-00000000-0000-4000-8000-000000000001)
  MIG 3g.20gb     Device  0: (UUID: MIG-00000000-0000-4000-8000-000000000002)
  MIG 2g.10gb     Device  1: (UUID: MIG-00000000-0000-4000-8000-000000000003)
"""

GPU_418 = """\
	<gpu id="00000000:43:00.0">
		<product_name>GeForce GTX 1660 Ti</product_name>
		<persistence_mode>Disabled</persistence_mode>
		<driver_model><current_dm>N/A</current_dm><pending_dm>N/A</pending_dm></driver_model>
		<serial>N/A</serial>
		<uuid>GPU-00000000-0000-4000-8000-000000001660</uuid>
		<vbios_version>90.16.25.00.4C</vbios_version>
		<pci>
			<pci_device_id>218410DE</pci_device_id>
			<pci_bus_id>00000000:43:00.0</pci_bus_id>
			<pci_sub_system_id>3FC81458</pci_sub_system_id>
			<pci_gpu_link_info>
				<pcie_gen><max_link_gen>3</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
				<link_widths>
					<max_link_width>16x</max_link_width><current_link_width>8x</current_link_width>
				</link_widths>
			</pci_gpu_link_info>
			<replay_counter>0</replay_counter>
		</pci>
		<performance_state>P8</performance_state>
		<clocks_throttle_reasons>
			<clocks_throttle_reason_gpu_idle>Active</clocks_throttle_reason_gpu_idle>
			<clocks_throttle_reason_sw_power_cap>Not Active</clocks_throttle_reason_sw_power_cap>
			<clocks_throttle_reason_display_clocks_setting>Active</clocks_throttle_reason_display_clocks_setting>
		</clocks_throttle_reasons>
		<fb_memory_usage><total>5912 MiB</total><used>0 MiB</used><free>5912 MiB</free>
		</fb_memory_usage>
		<bar1_memory_usage><total>256 MiB</total><used>2 MiB</used><free>254 MiB</free>
		</bar1_memory_usage>
		<compute_mode>Exclusive_Process</compute_mode>
		<utilization><gpu_util>0 %</gpu_util><memory_util>1 %</memory_util></utilization>
		<ecc_mode><current_ecc>N/A</current_ecc><pending_ecc>N/A</pending_ecc></ecc_mode>
		<ecc_errors>
			<volatile>
				<sram_correctable>N/A</sram_correctable><sram_uncorrectable>N/A</sram_uncorrectable>
				<dram_correctable>N/A</dram_correctable><dram_uncorrectable>N/A</dram_uncorrectable>
			</volatile>
		</ecc_errors>
		<temperature><gpu_temp>40 C</gpu_temp></temperature>
		<power_readings>
			<power_draw>8.93 W</power_draw>
			<power_limit>130.00 W</power_limit>
			<default_power_limit>130.00 W</default_power_limit>
			<enforced_power_limit>120.00 W</enforced_power_limit>
			<max_power_limit>140.00 W</max_power_limit>
		</power_readings>
		<clocks><sm_clock>300 MHz</sm_clock><mem_clock>405 MHz</mem_clock></clocks>
		<max_clocks><sm_clock>2145 MHz</sm_clock><mem_clock>4001 MHz</mem_clock></max_clocks>
		<processes>
		</processes>
	</gpu>
"""

GPU_595 = """\
	<gpu id="00000000:07:00.0">
		<product_name>NVIDIA A100-SXM4-80GB</product_name>
		<persistence_mode>Enabled</persistence_mode>
		<mig_mode><current_mig>Enabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
		<mig_devices>
			<mig_device>
				<index>0</index>
				<fb_memory_usage><total>19968 MiB</total><used>12 MiB</used></fb_memory_usage>
			</mig_device>
			<mig_device>
				<index>1</index>
				<fb_memory_usage><total>9856 MiB</total><used>12 MiB</used></fb_memory_usage>
			</mig_device>
		</mig_devices>
		<driver_model><current_dm>N/A</current_dm><pending_dm>N/A</pending_dm></driver_model>
		<serial>1650522003820</serial>
		<uuid>GPU-00000000-0000-4000-8000-000000000100</uuid>
		<vbios_version>92.00.36.00.02</vbios_version>
		<gpu_recovery_action>Drain and Reset</gpu_recovery_action>
		<gsp_firmware_version>595.84</gsp_firmware_version>
		<pci>
			<pci_device_id>20B210DE</pci_device_id>
			<pci_bus_id>00000000:07:00.0</pci_bus_id>
			<pci_sub_system_id>147F10DE</pci_sub_system_id>
			<pci_gpu_link_info>
				<pcie_gen>
					<max_link_gen>4</max_link_gen><current_link_gen>4</current_link_gen>
					<max_device_link_gen>5</max_device_link_gen>
				</pcie_gen>
				<link_widths>
					<max_link_width>16x</max_link_width><current_link_width>16x</current_link_width>
				</link_widths>
			</pci_gpu_link_info>
			<replay_counter>3</replay_counter>
		</pci>
		<performance_state>P0</performance_state>
		<clocks_event_reasons>
			<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
			<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
		</clocks_event_reasons>
		<fb_memory_usage>
			<total>81920 MiB</total><reserved>869 MiB</reserved>
			<used>50 MiB</used><free>80999 MiB</free>
		</fb_memory_usage>
		<bar1_memory_usage><total>131072 MiB</total><used>1 MiB</used></bar1_memory_usage>
		<compute_mode>Default</compute_mode>
		<utilization><gpu_util>N/A</gpu_util></utilization>
		<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
		<ecc_errors>
			<volatile>
				<sram_correctable>9</sram_correctable>
				<sram_uncorrectable_parity>1</sram_uncorrectable_parity>
				<sram_uncorrectable_secded>2</sram_uncorrectable_secded>
				<dram_correctable>9</dram_correctable>
				<dram_uncorrectable>4</dram_uncorrectable>
			</volatile>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_corr>0</remapped_row_corr>
			<remapped_row_unc>4</remapped_row_unc>
			<remapped_row_pending>Yes</remapped_row_pending>
			<remapped_row_failure>No</remapped_row_failure>
		</remapped_rows>
		<temperature><gpu_temp>27 C</gpu_temp></temperature>
		<gpu_power_readings>
			<power_state>Requested functionality has been deprecated</power_state>
			<average_power_draw>67.03 W</average_power_draw>
			<instant_power_draw>80.00 W</instant_power_draw>
			<current_power_limit>400.00 W</current_power_limit>
			<requested_power_limit>500.00 W</requested_power_limit>
			<default_power_limit>500.00 W</default_power_limit>
			<max_power_limit>500.00 W</max_power_limit>
		</gpu_power_readings>
		<clocks><sm_clock>1275 MHz</sm_clock><mem_clock>1593 MHz</mem_clock></clocks>
		<max_clocks><sm_clock>1410 MHz</sm_clock><mem_clock>1593 MHz</mem_clock></max_clocks>
		<fabric><state>In Progress</state><status>N/A</status></fabric>
		<supported_clocks>
			<supported_mem_clock>
				<value>1593 MHz</value><supported_graphics_clock>1410 MHz</supported_graphics_clock>
			</supported_mem_clock>
		</supported_clocks>
		<processes>
			<process_info>
				<pid>4711</pid><type>C</type><process_name>a < b & c</process_name>
			</process_info>
			<process_info>
				<pid>4712</pid><type>C</type><process_name></gpu></process_name>
			</process_info>
		</processes>
	</gpu>
"""


def xml(*gpus: str, driver: str = "595.84", cuda: str = "13.2", extra: str = "") -> str:
    """A document of `nvidia-smi -q -x` around these GPUs."""
    return (
        '<?xml version="1.0" ?>\n'
        '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'
        "<nvidia_smi_log>\n"
        "\t<timestamp>Fri Apr 10 10:23:01 2026</timestamp>\n"
        f"\t<driver_version>{driver}</driver_version>\n"
        f"\t<cuda_version>{cuda}</cuda_version>\n{extra}"
        f"\t<attached_gpus>{len(gpus)}</attached_gpus>\n"
        f"{''.join(gpus)}"
        "</nvidia_smi_log>\n"
    )
