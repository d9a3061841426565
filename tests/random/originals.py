"""The programs of tests/programs as modules of their own: a function `fn`, its inputs, and what it needs of its file, as text.

Only their source is read: nothing is imported. Left out are programs that a loop registers, and those that register operators of torch's,
which a process can do only once.
"""

import ast
import functools
import pathlib

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"
REGISTRY = pathlib.Path(__file__).parents[1] / "support" / "registry.py"
HELPERS = {"tensor", "leaf", "seeded", "text", "trap", "attempt"}  # of registry.py
ENDING = """
def inputs(k):
    return list({arguments}), {{}}

def between(k):
    pass
"""
CASE = """
try:
    {line}
except Exception as e:
    out.append((type(e).__name__, str(e)))
"""


def names_in(statements):
    return {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)}


def bound_by(statement):
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def registration(statement):
    """The decorator that registers a function, or None."""
    for decorator in getattr(statement, "decorator_list", []):
        if names_in([decorator]) & {"program", "built"}:
            return decorator
    return None


def helpers():
    return [s for s in ast.parse(REGISTRY.read_text()).body if getattr(s, "name", "") in HELPERS]


class Area:
    """One file: what it imports, what it defines, its programs and its tables of one-line cases."""

    def __init__(self, path):
        self.imports, self.definitions, self.programs, self.tables = [], helpers(), [], []
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                if getattr(statement, "module", "") != "tests.support.registry":
                    self.imports.append(statement)
            elif registration(statement):
                self.programs.append(statement)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                if statement.value.func.id == "cases" if isinstance(statement.value.func, ast.Name) else False:
                    self.tables.append(self.text(statement.value.args[2]).strip().splitlines())
            elif not isinstance(statement, (ast.Expr, ast.For)):
                self.definitions.append(statement)

    def text(self, table):
        """Of a table that is written in place, or has a name."""
        if isinstance(table, ast.Constant):
            return table.value
        return next(
            d.value.value for d in self.definitions if isinstance(d, ast.Assign) and d.targets[0].id == table.id
        )

    def module(self, body, arguments):
        """The text of a module of these statements: imports, and every definition that they lead to, in the order of the file."""
        body = body + ast.parse(ENDING.format(arguments=arguments)).body
        wanted, needed = names_in(body), []
        while more := [d for d in self.definitions if d not in needed and bound_by(d) & wanted]:
            needed += more
            wanted |= names_in(more)
        text = "\n".join(map(ast.unparse, [*self.imports, *[d for d in self.definitions if d in needed], *body]))
        return text + "\n"

    def program(self, statement):
        """None where it cannot be a module of its own."""
        decorator = registration(statement)
        given = next((k.value for k in getattr(decorator, "keywords", []) if k.arg == "args"), None)
        if given is not None and not isinstance(given, ast.Lambda):
            return None
        arguments = f"({ast.unparse(given)})({'k' if given.args.args else ''})" if given else "[tensor(k)]"
        function = ast.parse(ast.unparse(statement)).body[0]
        function.decorator_list = [d for d in function.decorator_list if not names_in([d]) & {"program", "built"}]
        body = [function]
        if "built" in names_in([decorator]):
            body += ast.parse(f"fn = {function.name}()").body
        else:
            function.name = "fn"
        text = self.module(body, arguments)
        return None if ".library" in text or "custom_op" in text or "LIB" in text else text

    def table(self, lines):
        """A program of some lines of a table."""
        function = ast.parse("def fn(x):\n    out = []\n    return x + 1, out").body[0]
        for line in lines:
            try:
                ast.parse(line, mode="eval")
                line = f"out.append(({line}))"
            except SyntaxError:
                pass
            function.body[-1:-1] = ast.parse(CASE.format(line=line)).body
        return self.module([function], "[tensor(k)]")


@functools.cache
def areas():
    return [Area(path) for path in sorted(PROGRAMS.glob("area_*.py"))]


@functools.cache
def programs():
    """Texts of all programs but the tables."""
    return [text for area in areas() for statement in area.programs if (text := area.program(statement))]


def draw(random):
    """A program, or some lines of a table."""
    with_tables = [area for area in areas() if area.tables]
    if random.random() < 0.75 or not with_tables:
        return random.choice(programs())
    area = random.choice(with_tables)
    lines = random.choice(area.tables)
    return area.table(random.sample(lines, min(len(lines), random.randint(2, 6))))
