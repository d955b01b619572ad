"""What a mutant is: one expression or statement of a source file, replaced by a wrong one.

A mutator takes a node of the syntax tree and yields pairs: the node to replace, and what to put in its place. The
faults are those that people make in this kind of code: a sign, a factor, a transposed or an exchanged operand, a wrong
axis, a dropped mask, an index off by one, a condition that is missing.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Pairs = Iterator[tuple[ast.AST, ast.AST]]

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
             ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
               ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
NAMESPACES = {"np", "numpy", "xp", "namespace", "ops", "cupy"}
FUNCTIONS = {"add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply",
             "maximum": "minimum", "minimum": "maximum"}
METHODS = {"max": "min", "min": "max", "any": "all", "all": "any"}
NOT_COMMUTATIVE = {"matmul", "dot", "outer", "product", "subtract", "sub", "divide", "div", "true_divide", "power",
                   "pow", "floor_divide", "remainder", "less", "greater", "less_equal", "greater_equal", "copyto"}
AXES = {"axis", "axes", "dim"}


def arithmetic(node: ast.AST) -> Pairs:
    """Another operator, exchanged factors of a product of matrices, ``1 - p`` as ``p``, a minus that is missing."""
    match node:
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS and not (is_text(left) or is_text(right)):
            yield node, ast.BinOp(left, OPERATORS[type(operator)](), right)
    match node:
        case ast.BinOp(left, ast.MatMult(), right):
            yield node, ast.BinOp(right, ast.MatMult(), left)
        case ast.BinOp(ast.Constant(1 | 1.0), ast.Sub(), right):
            yield node, right
        case ast.UnaryOp(ast.USub(), operand):
            yield node, operand
        case ast.AugAssign(target, operator, value) if type(operator) in OPERATORS:
            yield node, ast.AugAssign(target, OPERATORS[type(operator)](), value)


def results(node: ast.AST) -> Pairs:
    """What a function returns, negated: numbers and truth values."""
    match node:
        case ast.Return(value) | ast.Lambda(body=value) if is_number(value):
            yield value, ast.UnaryOp(ast.USub(), value)
        case ast.Return(ast.Constant(bool(truth)) as value):
            yield value, ast.Constant(not truth)


def conditions(node: ast.AST) -> Pairs:
    """Another comparison, ``and`` for ``or``, a condition that is negated, ignored, or missing from a comprehension."""
    match node:
        case ast.Compare(left, operators, right):
            for place, operator in enumerate(operators):
                if type(operator) in COMPARISONS:
                    others = [*operators[:place], COMPARISONS[type(operator)](), *operators[place + 1:]]
                    yield node, ast.Compare(left, others, right)
        case ast.BoolOp(operator, values):
            yield node, ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.If(test) | ast.IfExp(test):
            yield test, ast.UnaryOp(ast.Not(), test)
            yield test, ast.Constant(False)
        case ast.While(test):
            yield test, ast.Constant(False)
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield test, ast.Constant(True)


def statements(node: ast.AST) -> Pairs:
    """A statement that is missing: an update in place, or a call whose result nobody uses."""
    match node:
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield node, ast.Pass()


def constants(node: ast.AST) -> Pairs:
    """Off by one in indices, ranges, arguments, sums, comparisons; other axes; floats by a hundredth; other flags."""
    match node:
        case ast.Subscript(slice=index):
            yield from shifted(index, 1)
        case ast.BinOp(left, _, right):
            yield from (*shifted(left, 1, deep=False), *shifted(right, 1, deep=False))
        case ast.Compare(_, _, values) | ast.Call(_, values):
            for value in values:
                yield from shifted(value, 1, deep=False)
        case ast.keyword(name, value) if name in AXES:
            yield from (*shifted(value, 1), *shifted(value, -1))
        case ast.keyword(_, ast.Constant(bool(flag)) as value):
            yield value, ast.Constant(not flag)
        case ast.Constant(float(number)):
            yield node, ast.Constant(number * 1.01 if number else 0.01)


def calls(node: ast.AST) -> Pairs:
    """Another function, exchanged arguments, a transposition that is missing, a mask exchanged or dropped."""
    match node:
        case ast.Attribute(array, "T" | "mT"):
            yield node, array
        case ast.Call(ast.Attribute(ast.Name(), "transpose" | "swapaxes") as function, [first, *_]):
            yield node, first if function.value.id in NAMESPACES else function.value
        case ast.Call(ast.Attribute(array, "transpose" | "swapaxes")):
            yield node, array
        case ast.Call(ast.Name("where") | ast.Attribute(_, "where") as function, [mask, x, y], keywords):
            yield node, ast.Call(function, [mask, y, x], keywords)
            yield from ((node, x), (node, y))
        case ast.Call(ast.Name(name) | ast.Attribute(_, name) as function, [x, y, *rest], keywords):
            if name in NOT_COMMUTATIVE and not isinstance(x, ast.Starred) and not isinstance(y, ast.Starred):
                yield node, ast.Call(function, [y, x, *rest], keywords)
    match node:
        case ast.Call(ast.Attribute(ast.Name(xp) as module, name), values, keywords) if xp in NAMESPACES:
            if name in FUNCTIONS:
                yield node, ast.Call(ast.Attribute(module, FUNCTIONS[name], ast.Load()), values, keywords)
        case ast.Call(ast.Attribute(array, name), values, keywords) if name in METHODS:
            yield node, ast.Call(ast.Attribute(array, METHODS[name], ast.Load()), values, keywords)


MUTATORS: tuple[Callable[[ast.AST], Pairs], ...] = (arithmetic, results, conditions, statements, constants, calls)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_number(node: ast.AST | None) -> bool:
    """True for arithmetic on anything but text, and for what a function of an array module returns."""
    match node:
        case ast.BinOp(left, operator, right):
            return type(operator) in {*OPERATORS, ast.MatMult} and not (is_text(left) or is_text(right))
        case ast.Call(ast.Attribute(ast.Name(module))):
            return module in NAMESPACES
    return False


def shifted(node: ast.AST, by: int, *, deep: bool = True) -> Pairs:
    """The integers written in an expression, each raised by a number; only the expression itself if not `deep`."""
    match node:
        case ast.Constant(int(number)) if not isinstance(number, bool):
            yield node, literal(number + by)
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))):
            yield node, literal(by - number)
        case _ if deep:
            for child in ast.iter_child_nodes(node):
                yield from shifted(child, by)


def literal(number: int) -> ast.expr:
    return ast.UnaryOp(ast.USub(), ast.Constant(-number)) if number < 0 else ast.Constant(number)


# --- Where to look -------------------------------------------------------------------------------------------


def mutated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes to mutate, from one down: not types, error messages and strings, nor what only a type checker sees."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return
        case ast.Assign([ast.Name("__all__")]) | ast.If(ast.Name("TYPE_CHECKING")):
            return
        case ast.Expr(ast.Call(ast.Attribute(ast.Name("warnings")))):
            return
        case ast.FunctionDef(decorator_list=[ast.Name("overload"), *_]):
            return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from mutated(child)


@dataclass(frozen=True)
class Mutant:
    """One fault in one file.

    Attributes:
        file: the path of the file, from the root of the project.
        mutator: the name of the mutator.
        lines: the first and the last line that it replaces.
        source: the whole file with the fault.
        diff: its unified diff.
    """

    file: str
    mutator: str
    lines: tuple[int, int]
    source: str
    diff: str

    def changed(self, mark: str) -> str:
        """The lines that it changes ("-"), or what stands in their place ("+"), without indentation."""
        lines = self.diff.splitlines()[2:]
        return "\n".join(line[1:].strip() for line in lines if line.startswith(mark))


class Source:
    """A file and the places where it can be mutated; the mutants themselves are made one by one."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text, self.tree = file, text, ast.parse(text)
        self.sites = [(mutator.__name__, node, other)
                      for place in mutated(self.tree) for mutator in MUTATORS for node, other in mutator(place)]

    def mutant(self, site: int) -> Mutant | None:
        """The mutant of a place; None where the text of the file cannot express it."""
        mutator, node, other = self.sites[site]
        expected = ast.dump(replaced(self.tree, node, other))
        try:
            code = ast.unparse(other)
        except ValueError:  # quotes within quotes
            return None
        for text in (code, f"({code})"):
            source = self._with(node, text)
            try:
                if ast.dump(ast.parse(source)) == expected and source != self.text:
                    return Mutant(self.file, mutator, (node.lineno, node.end_lineno), source, self._diff(source))
            except SyntaxError:
                continue
        return None

    def _with(self, node: ast.AST, code: str) -> str:
        """The text with a node written anew. Columns of the syntax tree count bytes."""
        lines = self.text.encode().splitlines(keepends=True)
        before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
        after = lines[node.end_lineno - 1][node.end_col_offset:] + b"".join(lines[node.end_lineno:])
        return (before + code.encode() + after).decode()

    def _diff(self, source: str) -> str:
        names = (f"a/{self.file}", f"b/{self.file}")
        before, after = (text.splitlines(keepends=True) for text in (self.text, source))
        return "".join(difflib.unified_diff(before, after, *names, n=1))


def replaced(tree: ast.AST, node: ast.AST, other: ast.AST) -> ast.AST:
    """A copy of the tree with `other` where `node` is."""
    return copy.deepcopy(tree, {id(node): copy.deepcopy(other)})
