"""A virtual machine of Debian on aarch64, to test Clew's aarch64 wheel.

debian downloads and unpacks the Debian packages, disk makes the disk with the wheel and what it
needs, machine boots it in qemu and runs a program. `python -m tools.aarch64_vm` does all of it.

QEMU's emulation of single programs has no ptrace, so a whole machine is emulated. Nothing needs
root, and nothing of this machine is changed: all is written to build/aarch64.
"""
