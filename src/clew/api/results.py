"""Everything that the Python interface returns, by its public name."""

from clew.api.executions import Execution, Outcome
from clew.documents import repeats
from clew.documents.checkouts import Checkout, CheckoutStatus
from clew.documents.execution_details import File, Process
from clew.documents.lineage import Edge, Lineage, Node
from clew.documents.maintenance import Check, Problem, Reclaimed, Rule
from clew.documents.notes import Note
from clew.documents.recreations import Recreated
from clew.documents.status import ProjectStatus
from clew.documents.transfers import Transfer
from clew.documents.versions import Restored, Version

__all__ = [
    "Check",
    "Checkout",
    "CheckoutStatus",
    "Edge",
    "Execution",
    "File",
    "Lineage",
    "Node",
    "Note",
    "Outcome",
    "Problem",
    "Process",
    "ProjectStatus",
    "Reclaimed",
    "Recreated",
    "Repeated",
    "Restored",
    "Rule",
    "Transfer",
    "Version",
]


class Repeated(repeats.Repeated, frozen=True, kw_only=True):
    """What came of running an execution again."""

    execution: Execution
