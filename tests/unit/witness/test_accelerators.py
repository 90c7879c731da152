"""The files imitate those of the NVIDIA driver and toolkit."""

from pathlib import Path

from clew.witness.accelerators import find_accelerators


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_a_machine_without_accelerators(tmp_path: Path) -> None:
    assert find_accelerators(tmp_path, {}) == {}


def test_driver_device_and_toolkit(tmp_path: Path) -> None:
    write(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n",
    )
    write(
        tmp_path,
        "proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 61\nGPU UUID: \t GPU-12-34\n",
    )
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    write(tmp_path, "sys/bus/pci/devices/0000:02:00.0/vendor", "0x1002\n")
    write(tmp_path, "sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n")
    write(tmp_path, "sys/bus/pci/devices/0000:02:00.0/device", "0x744c\n")
    write(tmp_path, "usr/local/cuda/version.json", '{"cuda": {"version": "12.2.140"}}')
    write(
        tmp_path,
        "usr/include/cudnn_version.h",
        "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n",
    )
    assert find_accelerators(tmp_path, {}) == {
        "gpu": [
            {
                "vendor": "NVIDIA",
                "model": "NVIDIA A100-SXM4-40GB",
                "bus": "0000:01:00.0",
                "uuid": "GPU-12-34",
            },
            {"vendor": "AMD", "model": "0x744c", "bus": "0000:02:00.0"},
        ],
        "driver": {"nvidia": "535.183.01"},
        "cuda": "12.2.140",
        "cudnn": "8.9.7",
    }


def test_the_open_kernel_module_and_bare_libraries(tmp_path: Path) -> None:
    write(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n",
    )
    for name in ("libcudnn.so.9", "libcudnn.so.9.1.0", "libcudart.so.12.4.127"):
        write(tmp_path, f"usr/lib/x86_64-linux-gnu/{name}", "")
    assert find_accelerators(tmp_path, {}) == {
        "driver": {"nvidia": "550.54.15"},
        "cuda": "12.4.127",
        "cudnn": "9.1.0",
    }


def test_a_damaged_version_file_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, "opt/cuda/version.json", "[]")
    write(tmp_path, "opt/cuda/version.txt", "CUDA Version 10.2.89\n")
    assert find_accelerators(tmp_path, {"CUDA_HOME": "/opt/cuda"}) == {"cuda": "10.2.89"}
