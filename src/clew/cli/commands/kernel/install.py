"""`clew kernel install`: make the kernel that records notebooks known to Jupyter."""

import os

import click

from clew.cli.options import json_option
from clew.cli.output import print_json, print_message
from clew.errors import UsageError


@click.command(
    "install",
    short_help="Make the kernel known to Jupyter.",
    epilog="Example: clew kernel install --user",
)
@click.option("--user", is_flag=True, help="For you alone (the default).")
@click.option("--sys-prefix", is_flag=True, help="For Clew's own Python environment.")
@click.option("--prefix", metavar="DIR", help="Below another prefix, such as /usr/local.")
@click.option("--python", metavar="FILE", help="The Python that notebooks run in; has ipykernel.")
@json_option
def command(
    user: bool, sys_prefix: bool, prefix: str | None, python: str | None, as_json: bool
) -> None:
    """Install "Python 3 (Clew)" beside the stock kernel.

    It is ipykernel itself. What a notebook's cells read and write is recorded in the project that
    contains the notebook (`clew init`).
    """
    from clew.notebooks import kernel_spec

    if user + sys_prefix + (prefix is not None) > 1:
        raise UsageError("--user, --sys-prefix and --prefix exclude each other")
    if sys_prefix or prefix is not None:
        kernels = kernel_spec.find_prefix_kernels(prefix)
    else:
        kernels = kernel_spec.find_user_kernels(os.environ)
    installed = kernel_spec.install_kernel(kernels, python=python)
    if as_json:
        print_json(installed.as_json())
        return
    print_message(f'installed "{installed.display_name}" in {installed.path}')
    print_message(f"its notebooks run in {installed.python}")
