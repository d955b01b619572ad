"""Every use of a name of CuPy in some Python sources, found by reading them: nothing of them is run or imported.

    uses_in({"minigrad.device": text, ...}).uses

A value is followed as the set of what it may be, by full name: ``"cupy"`` for ``xp(x)``, ``"cupy.multiply"`` for
``xp(x).multiply``, ``"cupy.ndarray"`` for what that returns; literal strings too, ``"'erf'"``, for ``getattr``. It goes
through assignments, conditions, arguments of our own functions, what they return, module variables and attributes of
``self``; what passes between functions is joined over all callers (`tests.strict_cupy.facts`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from tests.strict_cupy.facts import ArrayUse, Facts, Use, lambda_name
from tests.strict_cupy.lookup import ARRAY, NOTHING, TABLE, Call, Values, known_as, returned

Scope = dict[str, Values]
CUPY: Values = frozenset({"cupy"})
# These give a namespace: the seams of minigrad.device. So does a parameter of one of the names below.
GIVE_NAMESPACE = {"xp", "module_for", "require_cuda", "_find_cuda"}
NAMESPACE_PARAMETERS = {"cupy", "namespace"}


def uses_in(texts: Mapping[str, str]) -> Facts:
    """What is used in these sources, given by the modules' dotted names."""
    facts = Facts(texts)
    while facts.unread:
        module = facts.unread.pop()
        facts.found[module] = Reader(facts, module).read(facts.trees[module])
    return facts


class Reader:
    """Reads one module, statement by statement; each branch has a copy of the scope, and the copies are joined."""

    def __init__(self, facts: Facts, module: str) -> None:
        self.facts, self.module, self.imported = facts, module, facts.imported[module]
        self.found: set[Use | ArrayUse] = set()
        self.function = "<module>"
        self.globals: set[str] = set()

    def read(self, tree: ast.Module) -> set[Use | ArrayUse]:
        scope: Scope = {}
        self.imports(tree, self.imported.values())
        self.block(tree.body, scope)
        for name, values in scope.items():
            self.facts.learn(values, self.module, name)
        return self.found

    def place(self, node: ast.AST) -> str:
        return f"{self.module}:{getattr(node, 'lineno', 1)}"

    def block(self, statements: Iterable[ast.stmt], scope: Scope) -> None:
        for statement in statements:
            self.statement(statement, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.values(node.decorator_list, scope)
                self.define(node, node.name, scope)
            case ast.ClassDef():
                self.values([*node.bases, *(k.value for k in node.keywords), *node.decorator_list], scope)
                self.block(node.body, {})
            case ast.Global(names=names):
                self.globals |= set(names)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.bind(target, value, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, value, scope)
            case ast.Return(value=ast.expr() as value):
                self.facts.learn(self.value(value, scope), self.module, self.function, "return")
            case ast.If() | ast.While():
                self.value(node.test, scope)
                self.branches([node.body, node.orelse], scope)
            case ast.For() | ast.AsyncFor():
                self.value(node.iter, scope)
                self.store(node.target, NOTHING, scope)
                self.branches([[*node.body, *node.orelse], []], scope)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    values = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.store(item.optional_vars, values, scope)
                self.block(node.body, scope)
            case ast.Try() | ast.TryStar():
                self.values([h.type for h in node.handlers if h.type], scope)
                self.branches([[*node.body, *node.orelse], *(h.body for h in node.handlers)], scope)
                self.block(node.finalbody, scope)
            case ast.Match():
                self.values([node.subject, *(case.guard for case in node.cases if case.guard)], scope)
                self.branches([case.body for case in node.cases], scope)
            case _:
                self.values([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)], scope)

    def branches(self, blocks: list[list[ast.stmt]], scope: Scope) -> None:
        """Read each from the same scope; afterwards a name may be what any of them left."""
        copies = [dict(scope) for _ in blocks]
        for block, copy in zip(blocks, copies, strict=True):
            self.block(block, copy)
        for name in set().union(*copies):
            scope[name] = NOTHING.union(*(copy.get(name, NOTHING) for copy in copies))

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str, scope: Scope) -> None:
        self.values([*node.args.defaults, *filter(None, node.args.kw_defaults)], scope)
        around = {} if self.function == "<module>" else scope  # a module's own variables are facts
        outside, self.function = self.function, name
        body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
        self.block(body, around | self.parameters(node.args))
        self.function = outside

    def parameters(self, arguments: ast.arguments) -> Scope:
        """What the parameters may be, as far as the callers tell."""
        names = [p.arg for p in ast.walk(arguments) if isinstance(p, ast.arg)]
        told = {name: self.facts.known(self.module, self.module, self.function, "parameter", name) for name in names}
        return told | dict.fromkeys(NAMESPACE_PARAMETERS.intersection(names), CUPY)

    def bind(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        match target, value:
            case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
                for name, values in zip(names, self.values(parts, scope), strict=True):
                    self.store(name, values, scope)
            case _:
                self.store(target, self.value(value, scope), scope)

    def store(self, target: ast.expr, values: Values, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope[name] = values
                if name in self.globals:
                    self.facts.learn(values, self.module, name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                self.facts.learn(values, self.module, "self", name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.store(part, NOTHING, scope)
            case ast.Starred(value=part):
                self.store(part, NOTHING, scope)
            case _:
                self.value(target, scope)

    def values(self, nodes: Iterable[ast.expr], scope: Scope) -> list[Values]:
        return [self.value(node, scope) for node in nodes]

    def value(self, node: ast.expr, scope: Scope) -> Values:
        """What an expression may be. Every part of it is read."""
        match node:
            case ast.Constant(value=str() as text):
                return frozenset({repr(text)})
            case ast.Name():
                return self.name(node.id, scope)
            case ast.Attribute():
                return self.attribute(node, scope)
            case ast.Call():
                return self.call(node, scope)
            case ast.NamedExpr(target=target, value=value):
                self.bind(target, value, scope)
                return scope[target.id]
            case ast.IfExp():
                return NOTHING.union(*self.values([node.test, node.body, node.orelse], scope)[1:])
            case ast.BoolOp():
                return NOTHING.union(*self.values(node.values, scope))
            case ast.Subscript():
                return ARRAY.intersection(self.values([node.value, node.slice], scope)[0])
            case ast.Lambda():
                self.define(node, lambda_name(node), scope)
                return frozenset({self.path(lambda_name(node))})
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                scope = dict(scope)
                for part in node.generators:
                    self.value(part.iter, scope)
                    self.store(part.target, NOTHING, scope)
                    self.values(part.ifs, scope)
        self.values([part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)], scope)
        return NOTHING

    def name(self, name: str, scope: Scope) -> Values:
        if name in scope:
            return scope[name]
        path = self.path(name)
        known = self.facts.known(self.module, *path.rsplit(".", 1))
        return known | {path} if path in TABLE or path in self.facts.functions else known

    def path(self, name: str) -> str:
        """The full name of a variable or function of the module."""
        return self.imported.get(name, f"{self.module}.{name}")

    def attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        base, name = self.value(node.value, scope), node.attr
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.facts.known(self.module, self.module, "self", name)
        if not base:
            self.array_use(node)
        return NOTHING.union(*(self.mention(node, path, name) for path in base if path in TABLE))

    def array_use(self, node: ast.Attribute, keywords: tuple[str, ...] = ()) -> None:
        if not (isinstance(node.value, ast.Name) and node.value.id in self.imported):
            self.found.add(ArrayUse(self.place(node), self.function, node.attr, keywords))

    def mention(self, node: ast.expr, path: str, name: str) -> Values:
        """Note that ``path.name`` is used; what it is, where there is something to follow."""
        self.found.add(Use(self.place(node), f"{path}.{name}", None))
        return known_as(path, name)

    def call(self, node: ast.Call, scope: Scope) -> Values:
        given = self.values(node.args, scope)
        named = {k.arg: self.value(k.value, scope) for k in node.keywords}
        match node.func:
            case ast.Name(id=name) | ast.Attribute(attr=name) if self.path(name).rpartition(".")[2] in GIVE_NAMESPACE:
                return CUPY
            case ast.Name(id="import_module") | ast.Attribute(attr="import_module"):
                return self.imports(node, [text.strip("'") for text in given[0]])
            case ast.Name(id="getattr"):
                return self.getattr(node, given)
        stars = [i for i, argument in enumerate(node.args) if isinstance(argument, ast.Starred)]
        call = Call(None if stars or None in named else len(given), tuple(name for name in named if name))
        called = self.value(node.func, scope)
        paths = called.intersection(TABLE)
        self.found |= {Use(self.place(node), path, call) for path in paths}
        if isinstance(node.func, ast.Attribute):
            called |= {self.method(node.func)}
            if not paths:
                self.array_use(node.func, call.keywords)
        ours = self.facts.call(self.module, called, given[: min(stars, default=None)], named)
        return ours.union(*map(returned, paths))

    def imports(self, node: ast.AST, paths: Iterable[str]) -> Values:
        """Note which names of CuPy are imported; those that exist."""
        paths = [path for path in paths if path.partition(".")[0] in ("cupy", "cupyx")]
        self.found |= {Use(self.place(node), path, None) for path in paths}
        return frozenset(path for path in paths if path in TABLE)

    def getattr(self, node: ast.Call, given: list[Values]) -> Values:
        """``getattr(base, name)``, for each name that is given here; with a default, the name need not exist."""
        names = [text.strip("'") for text in given[1] if text.startswith("'")] or ["<a computed name>"]
        found = [(path, name) for path in given[0] if path in TABLE for name in names
                 if len(given) == 2 or f"{path}.{name}" in TABLE]
        return NOTHING.union(*(self.mention(node, path, name) for path, name in found))

    def method(self, function: ast.Attribute) -> str:
        """The full name of our own function that this may be: of an imported module, or a method in this one."""
        base = function.value
        home = self.imported.get(base.id, self.module) if isinstance(base, ast.Name) else self.module
        return f"{home}.{function.attr}"
