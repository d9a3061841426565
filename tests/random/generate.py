"""A random program from a seed: a module with a function `fn`, its inputs for four calls, and what changes between calls.

The same seed gives the same text for ever under one version of the grammar; what was found is therefore kept as text, not as seeds.
"""

import itertools
import random
import re

from tests.random.grammar import DECLARATIONS, EXPRESSIONS, IMPORTS, STATEMENTS

TYPES = "F R S I D B T LF LI DF DI SI PF O C".split()
PLACEHOLDER = re.compile(r"<([A-Z]{1,2}3?)([!@^]|:[a-z]\w*)?>|<(block1?|RET)>|<params ([^>]*)>|<([a-z]\w*)>")
FRESH = re.compile(r"\$([a-z]\w*)")
MAX_DEPTH = 3


class Missing(Exception):
    """A production needs a variable that is not in reach."""


class Function:
    """Names of one function body: those assigned in it may be bound again, those of the enclosing ones are read only."""

    def __init__(self, returns):
        self.names = []  # (name, type), in the order of binding
        self.returns = returns


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counter = 0
        self.functions = []
        self.statements_left = self.random.choice([3, 6, 10, 16])
        self.declared = {}

    def fresh(self, prefix="v"):
        self.counter += 1
        return f"{prefix}{self.counter}"

    def choose(self, rows):
        return self.random.choices(rows, weights=[row[0] for row in rows])[0]

    def variables(self, kind, own=False):
        functions = self.functions[-1:] if own else self.functions
        return [name for function in functions for name, t in function.names if t == kind]

    # --- expressions

    def expression(self, kind, depth=0):
        names = self.variables(kind)
        if names and (depth >= MAX_DEPTH or self.random.random() < 0.35 + 0.25 * depth):
            return self.random.choice(names[-6:])
        if depth >= MAX_DEPTH:
            return self.simplest(kind)
        for _ in range(20):
            row = self.choose(EXPRESSIONS[kind])
            try:
                return self.fill_expression(row[1], row[2] if len(row) > 2 else {}, depth + 1)
            except Missing:
                continue
        return self.simplest(kind)

    def simplest(self, kind):
        if kind in ("F", "LF", "DF", "PF", "O", "R", "S"):
            tensors = self.variables("F")
            if not tensors:
                raise Missing
            name = self.random.choice(tensors)
            self.need("Box" if kind == "O" else "")
            texts = {
                "F": "{}",
                "LF": "[{}]",
                "DF": "{{'a': {}}}",
                "PF": "({},)",
                "O": "Box({}, 1)",
                "R": "{}[0]",
                "S": "{}.sum()",
            }
            return texts[kind].format(name)
        texts = {
            "I": "2",
            "I3": "1",
            "K": "0",
            "D": "0.5",
            "B": "True",
            "T": "'t'",
            "LI": "[1, 2]",
            "DI": "{'p': 1}",
            "SI": "{1, 2}",
        }
        return texts.get(kind, "torch.relu")

    def fill_expression(self, text, bound, depth):
        names = {}
        text = FRESH.sub(lambda m: names.setdefault(m[1], self.fresh()), text)
        outer = re.sub(r"<([A-Z]{1,2}3?)\^>", lambda m: self.operand(m[1], depth), text)
        scope = self.functions[-1].names
        mark = len(scope)
        scope.extend((names[name[1:]], kind) for name, kind in bound.items())
        try:
            filled = re.sub(r"<([A-Z]{1,2}3?)>", lambda m: self.operand(m[1], depth), outer)
        finally:
            del scope[mark:]
        self.need_names_in(filled)
        return filled

    def operand(self, kind, depth):
        text = self.expression(kind, depth)
        atom = re.fullmatch(r"\w+(\.\w+)?|[\w.]*\([^()]*\)|'[^']*'|\d+\.\d+", text)
        return text if atom else f"({text})"

    # --- statements

    def block(self, size=None):
        """At least one statement, as lines."""
        mark = len(self.functions[-1].names)
        lines = []
        for _ in range(size or self.random.randint(1, 3)):
            if self.statements_left <= 0:
                break
            self.statements_left -= 1
            lines += self.statement()
        del self.functions[-1].names[mark:]
        return lines or ["pass"]

    def statement(self):
        for _ in range(30):
            text = self.choose(STATEMENTS)[1]
            if self.statements_left <= 0 and "<block" in text:
                continue
            state = (self.counter, [list(f.names) for f in self.functions], self.statements_left)
            try:
                return self.fill_lines(text)
            except Missing:
                self.counter, names, self.statements_left = state
                del self.functions[len(names) :]
                for function, kept in zip(self.functions, names, strict=True):
                    function.names = kept
        return ["pass"]

    def fill_lines(self, text):
        """Fills a template of several lines. A `def` opens a function; names bound in indented lines end with the template."""
        labels, out, fresh = {}, [], {}
        text = FRESH.sub(lambda m: fresh.setdefault(m[1], self.fresh(m[1] if m[1] in "fg" else "v")), text)
        base = len(self.functions)
        opened = []  # indentation of every open def
        inner = []  # names bound in indented lines
        for line in text.rstrip("\n").split("\n"):
            indent = len(line) - len(line.lstrip())
            while opened and line.strip() and indent <= opened[-1]:
                opened.pop()
                self.functions.pop()
            pending = []
            body = line.strip()
            if body in ("<block>", "<block1>"):
                out += [" " * indent + inside for inside in self.block(1 if body == "<block1>" else None)]
                continue
            if body.startswith("<params "):
                for pair in body[8:-1].split():
                    self.functions[-1].names.append(tuple(pair.split(":")))
                continue
            filled = PLACEHOLDER.sub(lambda m, p=pending: self.placeholder(m, labels, p), body)
            out.append(" " * indent + filled)
            self.need_names_in(filled)
            self.functions[-1].names += pending
            if indent:
                inner += pending
            if body.startswith("def "):
                opened.append(indent)
                self.functions.append(Function("F"))
        del self.functions[base:]
        self.functions[-1].names = [pair for pair in self.functions[-1].names if pair not in inner]
        return out

    def placeholder(self, match, labels, pending):
        kind, suffix, word, _, label = match.groups()
        if label:
            if label not in labels:
                raise Missing
            return labels[label]
        if word == "RET":
            return self.returned()
        if suffix and suffix[0] == ":":
            name = self.fresh()
            labels[suffix[1:]] = name
            pending.append((name, kind))
            return name
        if suffix == "!":
            names = [name for name in self.variables(kind, own=True) if not name.startswith("G_")]
            if not names:
                raise Missing
            return self.random.choice(names)
        if suffix == "@":
            names = self.variables(kind)
            if not names:
                raise Missing
            return self.random.choice(names)
        return self.operand(kind, 1)

    def returned(self):
        if self.functions[-1].returns == "F":
            return self.expression("F", 2)
        names = [name for name, kind in self.functions[-1].names if kind != "C"]
        self.random.shuffle(names)
        names = names[: self.random.randint(1, 6)]
        form = self.random.randrange(5)
        if form == 0 or len(names) == 1:
            return names[0]
        if form == 1:
            return "[" + ", ".join(names) + "]"
        if form == 2:
            return "{" + ", ".join(f"'{n}': {n}" for n in names) + "}"
        return "(" + ", ".join(names) + ")"

    # --- declarations

    def need(self, name):
        if name and name not in self.declared:
            self.declared[name] = None  # its own text may need it: it is on its way
            mine, self.functions = self.functions, [Function("F")]
            left, self.statements_left = self.statements_left, min(self.statements_left, 2)
            try:
                lines = self.fill_declaration(DECLARATIONS[name])
            finally:
                self.functions, self.statements_left = mine, left
            text = "\n".join(lines)
            self.need_names_in(text)
            del self.declared[name]  # to come after everything that it needs
            self.declared[name] = text

    def fill_declaration(self, text):
        if "<" not in text.replace("<=", "").replace("< ", ""):
            return text.split("\n")
        for _ in range(20):
            try:
                return self.fill_lines(text)
            except Missing:
                self.functions = [Function("F")]
        return re.sub(r"\n *<(block1?|params[^>]*)>", "", text).replace("<F>", "p").split("\n")

    def need_names_in(self, text):
        for name in re.findall(r"[A-Za-z_]\w*", text):
            if name in DECLARATIONS and name not in self.declared:
                self.need(name)

    # --- inputs

    INPUTS = {
        "F": [
            "torch.randn(n, m, dtype=dtype)",
            "torch.randn(n, m, dtype=dtype)",
            "torch.randn(m, n, dtype=dtype).t()",
            "torch.randn(n, 2 * m, dtype=dtype)[:, ::2]",
            "torch.randn(n, m, dtype=dtype, requires_grad=k != 2)",
            "torch.rand(n, m, requires_grad=True)",
            "F_PREVIOUS",
        ],
        "R": ["torch.randn(m)"],
        "S": ["torch.randn(())", "torch.tensor(float(k))"],
        "I": ["2", "[1, 2, 3, 0][k]", "[0, 0, -1, 7][k]", "n"],
        "D": ["0.5", "[1.0, 0.0, -1.5, 2.0][k]", "[0.5, 0.5, 1, float('inf')][k]"],
        "B": ["True", "k % 2 == 0", "bool(n > 3)"],
        "T": ["'abc'", "['a', 'b', '', 'abc'][k]"],
        "LF": [
            "[torch.randn(n, m), torch.ones(n, m)]",
            "[torch.randn(n, m) for _ in range(1 + k)]",
            "[F_PREVIOUS, torch.randn(n, m)]",
        ],
        "LI": ["[1, 2, 3]", "[3, 1, 2][: 3 - k % 3]", "list(range(k + 1))"],
        "DF": [
            "{'a': torch.randn(n, m), 'b': torch.ones(n, m)}",
            "{'a': torch.randn(n, m)} if k < 2 else {'b': torch.randn(n, m), 'a': F_PREVIOUS}",
        ],
        "DI": ["{'p': 1, 'q': 2}", "{'p': k}"],
        "SI": ["{1, 2}", "set(range(k))"],
        "PF": ["(torch.randn(n, m), torch.ones(n, m))", "(F_PREVIOUS, F_PREVIOUS)"],
        "O": [
            "Box(torch.randn(n, m), 2)",
            "(Box if k < 2 else Child)(torch.randn(n, m), k)",
            "Data(torch.randn(n, m), k)",
            "Slotted(F_PREVIOUS, 1)",
            "G_BOX",
        ],
    }

    def program(self):
        r = self.random
        main = Function("ANY")
        kinds = ["F"] + [r.choice(["F", "F", *[t for t in TYPES if t != "C"]]) for _ in range(r.randint(0, 5))]
        parameters, values, previous = [], [], None
        for kind in kinds:
            name = self.fresh("x")
            parameters.append(name)
            text = r.choice(self.INPUTS[kind]).replace("F_PREVIOUS", previous or "torch.randn(n, m)")
            same_kind = [other for other, k in main.names if k == kind]
            if same_kind and r.random() < 0.25:  # one object under two names, in some calls only
                other = r.choice(same_kind)
                other = r.choice([other, f"{other}[:]", f"{other}.view(n, m)"]) if kind == "F" else other
                text = r.choice([f"{other} if k == 2 else {text}", f"{text} if k == 2 else {other}"])
            values.append((name, text))
            self.need_names_in(text)
            main.names.append((name, kind))
            if kind == "F":
                previous = name
        self.functions = [main]
        body = []
        if r.random() < 0.15:
            self.need("G_N")
            body.append("global G_N, G_SCALE")
            self.need("G_SCALE")
            main.names += [("G_N", "I"), ("G_SCALE", "D")]
            body.append("G_N = G_N + 1")
        while self.statements_left > 0:
            self.statements_left -= 1
            body += self.statement()
        body.append("return " + self.returned())
        between = self.between()
        star = r.random()
        signature = ", ".join(parameters)
        if len(parameters) > 1 and star < 0.1:
            signature = ", ".join([*parameters[:-1], "*", parameters[-1]])
        last_by_name = ", *, " in signature or (star > 0.9 and len(parameters) > 1)
        positional = parameters[:-1] if last_by_name else parameters
        keywords = parameters[-1:] if last_by_name else []
        sizes = r.choice(["[3, 4, 2, 3][k]", "[2, 3, 5, 4][k]", "3", "[4, 1, 4, 2][k]"])
        widths = r.choice(["4", "[4, 4, 6, 3][k]", "[3, 5, 3, 4][k]"])
        dtype = r.choice(["torch.float32", "torch.float32", "torch.float64 if k == 3 else torch.float32"])
        inputs = [
            f"n, m, dtype = {sizes}, {widths}, {dtype}",
            *(f"{name} = {text}" for name, text in values),
            f"return [{', '.join(positional)}], {{{', '.join(f'{n!r}: {n}' for n in keywords)}}}",
        ]
        parts = [IMPORTS]
        parts += [text for text in self.declared.values() if text]
        parts += self.target(signature, body)
        parts.append(function("inputs(k)", inputs))
        parts.append(function("between(k)", between))
        return "\n\n".join(parts) + "\n"

    def target(self, signature, body):
        """What is compiled: mostly a function, now and then a method or a module."""
        form = self.random.random()
        if form < 0.8:
            return [function(f"fn({signature})", body)]
        base, name = ("torch.nn.Module", "forward") if form < 0.92 else ("", "run")
        lines = [
            "def __init__(self):\n    super().__init__()\n    self.calls = 0",
            function(f"{name}(self, {signature})", ["self.calls += 1", *body]),
        ]
        inner = "\n\n".join(lines).split("\n")
        made = "\n".join([f"class Target({base}):", *("    " + line if line else "" for line in inner)])
        return [made, "target = Target()", "fn = target" if base else "fn = target.run"]

    def between(self):
        """What the world does between two calls, so that guards on globals, classes and containers are needed."""
        changes = {
            "G_N": "global G_N\nG_N = k",
            "G_SCALE": "global G_SCALE\nG_SCALE = 0.75 if k < 2 else 1.25",
            "G_FLAG": "global G_FLAG\nG_FLAG = k != 1",
            "G_W": "global G_W\nG_W = torch.tensor([1.5, 2.5, 0.5, 1.0][k])",
            "G_TABLE": "G_TABLE['f'] = torch.cos if k != 2 else torch.sin",
            "G_LIST": "if k == 3:\n    G_LIST.clear()",
            "Box": "Box.factor = 0.5 if k < 3 else 2.5",
            "G_BOX": "G_BOX.w = torch.tensor(float(k))",
            "Fixed": "Fixed.LIMIT = 3 + k // 2",
            "net": "net.train(k % 2 == 0)",
            "helper": "helper.__defaults__ = (2 + k // 3,)",
        }
        lines = ["pass"]
        for name, text in changes.items():
            if name in self.declared and self.random.random() < 0.6:
                lines += [line for line in text.split("\n") if line not in lines]
        return sorted(lines, key=lambda line: not line.startswith("global "))


def function(signature, lines):
    return "\n".join([f"def {signature}:", *("    " + line for line in lines)])


def program(seed):
    """The text of a module with fn, inputs and between."""
    for attempt in itertools.count():
        text = Generator(seed * 100 + attempt).program()
        try:
            compile(text, "program", "exec")
        except SyntaxError:  # a quote inside an f-string, which Python 3.11 does not allow
            continue
        return text


if __name__ == "__main__":
    import sys

    print(program(int(sys.argv[1])))
