"""What the code of a cell says: its key, and the names that it can refer to.

The key is the same for code that differs in comments and layout only. The names are those that the
code could possibly use: names of every scope, and words in texts, because `df.query("x > @limit")`,
`%%time` and `!echo $name` refer to variables by texts. Too many names make a cell depend on too
much, never on too little.
"""

import ast
import hashlib
import re
from collections.abc import Iterable
from types import CodeType
from typing import NamedTuple

_WORD = re.compile(r"[^\W\d]\w*")
_ANY_NAME = frozenset(
    {
        *("globals", "locals", "vars", "dir", "eval", "exec", "__main__", "__dict__"),
        *("_getframe", "currentframe", "get_objects", "get_referrers", "stack"),
    }
)
"""With these, code can reach every variable, whatever names it mentions."""
_ANY_NAME_IN_TEXT = frozenset({"globals", "locals", "eval", "exec"})
_HISTORY = re.compile(r"_+|_i+|_i?\d+|In|Out|_[oid]h|_exit_code")
"""Names that IPython itself sets after each cell."""
_MAGICS = frozenset(
    {
        *("bash", "sh", "script", "html", "HTML", "javascript", "js", "latex", "markdown", "svg"),
        *("SVG", "writefile", "file", "time", "timeit", "capture", "matplotlib", "pwd", "ls", "cd"),
        *("cat", "mkdir", "cp", "mv", "rm", "env", "precision", "pprint"),
    }
)
"""Magics that reach only variables which their text names."""
_RUN_MAGIC = frozenset({"run_line_magic", "run_cell_magic"})
_COMMANDS = frozenset({"system", "getoutput"})
_SHELL = "get_ipython"


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class CodeNames(NamedTuple):
    """The names that a piece of code can refer to."""

    names: frozenset[str]
    dynamic: str | None
    """The name with which it can reach any variable; None: it reaches what it names."""
    assigned: frozenset[str] = frozenset()
    """Names that it may assign and never reads before."""


def normalize(code: str) -> str | None:
    """The code as a syntax tree without positions; None if it is not valid Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return ast.dump(tree)


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def find_names(code: str) -> CodeNames:
    """The names that the code of a cell, with its magics translated to calls, can read. A name that
    it always assigns first is none of them."""
    tree = ast.parse(code)
    finder = _NameFinder()
    finder.read_block(tree.body, set())
    names: set[str] = set(finder.names)
    dynamic: str | None = None
    mentions = harmless = 0  # of the shell
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in _ANY_NAME:
                dynamic = dynamic or node.attr
        elif isinstance(node, ast.Name):
            mentions += node.id == _SHELL
            if node.id in _ANY_NAME or _HISTORY.fullmatch(node.id):
                dynamic = dynamic or node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = set(_WORD.findall(node.value))
            names |= words
            dynamic = dynamic or min(words & _ANY_NAME_IN_TEXT, default=None)
        elif isinstance(node, ast.Call):
            harmless += _is_harmless_magic(node)
        elif isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            dynamic = dynamic or "import *"
    if mentions > harmless:
        dynamic = dynamic or "a magic"
    return CodeNames(frozenset(names), dynamic, frozenset(finder.assigned - names))


class _NameFinder:
    """Collects the names that statements may read before they have certainly assigned them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.assigned: set[str] = set()

    def read_block(self, block: list[ast.stmt], assigned: set[str]) -> None:
        """Read statements in order; adds to `assigned` what they certainly assign."""
        for statement in block:
            self._read_statement(statement, assigned)

    def _read_statement(self, node: ast.stmt, assigned: set[str]) -> None:
        if isinstance(node, ast.Assign):
            self._read(node.value, assigned)
            for target in node.targets:
                self._assign(target, assigned)
        elif isinstance(node, ast.If | ast.While | ast.For | ast.AsyncFor):
            self._read_branches(node, assigned)
        elif isinstance(node, ast.With | ast.AsyncWith):
            within = set(assigned)  # it may suppress an exception in its body
            for item in node.items:
                self._read(item.context_expr, within)
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, within)
            self.read_block(node.body, within)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._bind((one.asname or one.name).partition(".")[0] for one in node.names)
            assigned |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._read(node, assigned | {node.name})
            self._bind([node.name])
            assigned.add(node.name)
        elif isinstance(node, ast.Delete):
            self._read(node, assigned)
            assigned -= {one.id for one in node.targets if isinstance(one, ast.Name)}
        else:
            self._read(node, assigned)
            if isinstance(node, ast.ClassDef):
                self._bind([node.name])
                assigned.add(node.name)

    def _read_branches(
        self, node: ast.If | ast.While | ast.For | ast.AsyncFor, assigned: set[str]
    ) -> None:
        one, other = set(assigned), set(assigned)
        if isinstance(node, ast.For | ast.AsyncFor):
            self._read(node.iter, assigned)
            self._assign(node.target, one)
        else:
            self._read(node.test, assigned)
        self.read_block(node.body, one)
        self.read_block(node.orelse, other)
        if isinstance(node, ast.If):
            assigned |= one & other

    def _assign(self, target: ast.expr, assigned: set[str]) -> None:
        if isinstance(target, ast.Name):
            self._bind([target.id])
            assigned.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self._assign(one, assigned)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, assigned)
        else:
            self._read(target, assigned)

    def _bind(self, names: Iterable[str]) -> None:
        self.assigned.update(names)

    def _read(self, node: ast.AST, assigned: set[str]) -> None:
        """Take every name in it, whatever its scope."""
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and one.id not in assigned:
                self.names.add(one.id)
            elif isinstance(one, ast.Global | ast.Nonlocal):
                self.names.update(one.names)
            elif isinstance(one, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and one.name:
                self.names.add(one.name)
            elif isinstance(one, ast.MatchMapping) and one.rest:
                self.names.add(one.rest)
            elif isinstance(one, ast.alias):  # within a statement of another kind
                self.names.add((one.asname or one.name).partition(".")[0])
            elif isinstance(one, _DEFINITIONS) and one is not node:
                self.names.add(one.name)


def find_code_names(code: CodeType) -> CodeNames:
    """The names in the code of a function, with the functions in it."""
    names: set[str] = set(code.co_names)
    dynamic = min(names & (_ANY_NAME | {_SHELL}), default=None)
    waiting = list(code.co_consts)
    while waiting:
        constant = waiting.pop()
        if isinstance(constant, CodeType):
            inner = find_code_names(constant)
            names |= inner.names
            dynamic = dynamic or inner.dynamic
        elif isinstance(constant, str):
            words = set(_WORD.findall(constant))
            names |= words
        elif isinstance(constant, tuple | frozenset):
            waiting += constant
    return CodeNames(frozenset(names), dynamic)


def _is_harmless_magic(call: ast.Call) -> bool:
    """Whether this is a call of IPython's shell that reaches only what its text names."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Call):
        return False
    shell = function.value.func
    if not isinstance(shell, ast.Name) or shell.id != _SHELL:
        return False
    first = call.args[0] if call.args else None
    magic = first.value if isinstance(first, ast.Constant) else None
    return function.attr in _COMMANDS or (function.attr in _RUN_MAGIC and magic in _MAGICS)
