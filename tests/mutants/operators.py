"""Every small change of a module that a test ought to notice.

Changed are comparisons, boolean and arithmetic operators, conditions, number and boolean literals, ``min``/``max``,
``any``/``all``, ``sorted``, and statements that only have an effect (left out). Left as they are: annotations,
decorators, headers of classes, named numbers of a module (bounds and tolerances are policy), texts, what is logged, and
``strict`` of ``zip`` (a check of the code by itself), places where a search may be stopped (more than enough of them),
and in ``if a != b: return a < b`` the second comparison.
"""

import ast
import difflib
from collections.abc import Container, Iterator
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_LOGGERS = {"log", "logger"}
_PAUSES = {"safe_point"}


class Mutant(NamedTuple):
    """A module with one change."""

    path: str
    """The module, relative to the root of the repository."""
    line: int
    function: tuple[int, int] | None
    """First line of the innermost function whose body has the change, and of the outermost; None: in no body."""
    lines: tuple[int, int]
    """First and last line of which one runs wherever the change could matter: a statement, or the head of one."""
    source: str
    """The whole module, changed."""
    before: str
    """The changed line as it was, without its indentation."""
    after: str

    def difference(self, original: str) -> str:
        """A unified diff against ``original``."""
        lines = difflib.unified_diff(
            original.splitlines(), self.source.splitlines(), self.path, self.path, lineterm="", n=2
        )
        return "\n".join(lines)


def mutants(path: str, source: str, changing: Container[str] | None = None) -> list[Mutant]:
    """All mutants of a module, in the order of its text; only such as compile. ``changing``: only those whose line was
    one of these."""
    lines = source.splitlines(keepends=True)
    found: list[Mutant] = []
    seen = {source}
    for node, text, function, run in _Changes().of(ast.parse(source)):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        before = _flat(lines[first:last])
        if changing is not None and before not in changing:
            continue
        changed = _replaced(lines, node, text)
        if changed in seen or not _compiles(changed):
            continue
        seen.add(changed)
        kept = len(lines) - last
        after = changed.splitlines()[first : len(changed.splitlines()) - kept]
        found.append(Mutant(path, node.lineno, function, run, changed, before, _flat(after)))
    return found


def _flat(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _replaced(lines: list[str], node: ast.expr | ast.stmt, text: str) -> str:
    """The text of the module with ``node`` written as ``text``. Columns of a syntax tree count bytes of UTF-8."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    return "".join([*lines[:first], head + text + tail, *lines[last + 1 :]])


_Change = tuple[ast.expr | ast.stmt, str, tuple[int, int] | None, tuple[int, int]]


def _lines(node: ast.stmt) -> tuple[int, int]:
    """The lines of a statement; of one with statements inside those of its head and the first line of its body."""
    body: list[ast.stmt] = getattr(node, "body", [])
    return node.lineno, body[0].lineno if body else node.end_lineno or node.lineno


def _settled(node: ast.If) -> ast.expr | None:
    """In ``if a != b: return a < b`` the second comparison: it is never asked of two that are equal."""
    body = node.body[0]
    if not (
        isinstance(node.test, ast.Compare) and isinstance(body, ast.Return) and isinstance(body.value, ast.Compare)
    ):
        return None
    asked, said = node.test, body.value
    same = [ast.dump(one) for one in (asked.left, *asked.comparators)] == [
        ast.dump(one) for one in (said.left, *said.comparators)
    ]
    strict = isinstance(asked.ops[0], ast.NotEq) and isinstance(said.ops[0], ast.Lt | ast.Gt)
    return said if same and strict else None


class _Changes:
    """Walks a syntax tree and yields what could stand in the place of its nodes."""

    def __init__(self) -> None:
        self._functions: list[int] = []
        self._lines = (1, 1)
        self._settled: list[ast.AST | None] = []

    def of(self, node: ast.AST) -> Iterator[_Change]:
        """Node, text in its place, the function and the lines around it."""
        if isinstance(node, ast.JoinedStr | ast.pattern) or _only_for_types(node) or _logs(node):
            return
        around = self._lines
        if isinstance(node, ast.If):
            self._settled.append(_settled(node))
        if isinstance(node, ast.stmt):
            self._lines = _lines(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self.of(node.args)  # defaults are worked out where the function is made
            self._functions.append(min(one.lineno for one in (node, *node.decorator_list)))  # as code objects have it
            for child in node.body:
                yield from self.of(child)
            self._functions.pop()
            self._lines = around
            return
        at = (self._functions[-1], self._functions[0]) if self._functions else None
        if isinstance(node, ast.expr | ast.stmt) and node not in self._settled:
            yield from ((changed, text, at, self._lines) for changed, text in _of_node(node))
        for child in self._children(node):
            yield from self.of(child)
        self._lines = around

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        """Children in the order of the text, without what is a declaration."""
        skipped: list[ast.AST] = []
        if isinstance(node, ast.ClassDef):
            skipped += [*node.decorator_list, *node.bases, *node.keywords]
        elif isinstance(node, ast.AnnAssign):
            skipped.append(node.annotation)
            if not self._functions and node.value is not None and _is_number(node.value):
                skipped.append(node.value)
        elif isinstance(node, ast.arg):
            return
        elif isinstance(node, ast.Assign) and not self._functions and _is_number(node.value):
            skipped.append(node.value)
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            return
        yield from (child for child in ast.iter_child_nodes(node) if child not in skipped)


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_number(node: ast.expr) -> bool:
    """Whether it is a literal, or worked out of nothing but literals."""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.Tuple):
        return all(_is_number(one) for one in node.elts)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_number(node.operand))


def _logs(node: ast.AST) -> bool:
    """Whether a statement does nothing but log, or let a search be stopped."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    callee = node.value.func
    while isinstance(callee, ast.Attribute):
        callee = callee.value
    return isinstance(callee, ast.Name) and callee.id.lstrip("_") in _LOGGERS | _PAUSES


def _of_node(node: ast.expr | ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What could stand in the place of this node, or of an expression that it owns."""
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            ops = [*node.ops[:i], _COMPARISONS[type(operator)](), *node.ops[i + 1 :]]
            yield node, _text(ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.BoolOp):
        yield node, _text(ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node, _text(node.operand)
    elif isinstance(node, ast.BinOp) and not _joins(node):
        yield node, _text(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        yield from _of_call(node, _CALLS[node.func.id])
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.IfExp):
        yield from _negated(node.test)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for generator in node.generators:
            for test in generator.ifs:
                yield from _negated(test)


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.If):
        yield from _negated(node.test)
    elif isinstance(node, ast.Break):
        yield node, "continue"
    elif isinstance(node, ast.Continue):
        yield node, "break"
    elif isinstance(node, ast.AugAssign):
        if not isinstance(node.value, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple):
            other = ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
            yield node, ast.unparse(other)
        yield node, "pass"
    elif _has_only_an_effect(node):
        yield node, "pass"


def _has_only_an_effect(node: ast.stmt) -> bool:
    """Whether the code still runs without it: a call whose value nobody takes, what is set in something, ..."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    if isinstance(node, ast.Delete):  # without a name that is forgotten the code does the same
        return not any(isinstance(target, ast.Name) for target in node.targets)
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _of_call(node: ast.Call, other: str) -> Iterator[tuple[ast.expr, str]]:
    # Without its key a list is what an order would have been made of.
    keywords = [] if other == "list" else node.keywords
    yield node, ast.unparse(ast.Call(ast.Name(other), node.args, keywords))


def _of_constant(node: ast.Constant) -> Iterator[tuple[ast.expr, str]]:
    value = node.value
    if isinstance(value, bool):
        yield node, repr(not value)
    elif isinstance(value, int | float):
        yield node, repr(value + 1)


def _negated(test: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """The opposite condition, unless changing an operator of it comes to the same."""
    opposite = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot)
    member = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn)
    if not (opposite or member or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))):
        yield test, f"(not ({ast.unparse(test)}))"


def _joins(node: ast.BinOp) -> bool:
    """Whether texts or lists are put together, which can't be subtracted anyway."""
    kinds = ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple
    sides = (node.left, node.right)
    text = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
    return text or any(isinstance(side, kinds) for side in sides)


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
