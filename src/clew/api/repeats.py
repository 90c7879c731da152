"""Repeats as the Python interface returns them."""

from clew.api.executions import Execution
from clew.documents.executions import repeats


class Repeated(repeats.Repeated, frozen=True, kw_only=True):
    """The result of running an execution again."""

    execution: Execution
