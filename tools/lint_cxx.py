"""What the C++ tree looks like from above: include cycles and helpers of one name in one folder (errors), and reports that nobody has to act on: the longest files and
functions, functions that nothing calls, functions that only tests call, repeated passages. --clang-tidy also runs its bugprone and
performance checks on changed files, where it is installed.

Works on text, without a build: it takes two seconds. Comments and literals are blanked first. A function counts as called when its
name stands anywhere else than in its definition and its declarations, so two functions of one name hide each other.
"""

import argparse
import re
import shutil
import subprocess
import sys
from bisect import bisect
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\ ]{0,16})\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Fa-f])\'(?:[^\'\\\n]|\\.)+\'',
    re.S,
)
CONTAINER = re.compile(r"\b(namespace|class|struct|enum|union|extern)\b[^()]*$")
NAME = re.compile(r"(?P<name>~?\w+|operator[^\w\s(]{1,3})\s*(?:<[^<>()]*>\s*)?\(")
WORD = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(?P<path>[^"]+)"', re.M)
KEYWORDS = {
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "return",
    "sizeof",
    "decltype",
    "noexcept",
    "requires",
    "alignas",
    "static_assert",
    "defined",
}
# Called by templates of others: nanobind, nlohmann's event parser, range-based for, libFuzzer.
CALLED_FROM_OUTSIDE = {"main", "begin", "end", "from_cpp", "from_python", "LLVMFuzzerTestOneInput"} | {
    *(
        "number_integer",
        "number_unsigned",
        "number_float",
        "start_object",
        "start_array",
        "end_object",
        "end_array",
        "parse_error",
    )
}
PASSAGE = 7  # lines that have to be the same


@dataclass
class Function:
    path: Path
    line: int
    length: int
    name: str
    is_method_override: bool
    is_anonymous: bool  # right inside of an anonymous namespace
    is_free: bool  # no method
    scope: str  # the named namespaces around it


def blanked(text: str, comments_only: bool = False) -> str:
    """The same text, as long and with the same lines, without comments, literals and preprocessor lines."""

    def blank(m: re.Match[str]) -> str:
        return m[0] if comments_only and m[0][0] != "/" else re.sub(r"[^\n]", " ", m[0])

    if comments_only:
        return LITERALS.sub(blank, text)
    return re.sub(r"^[ \t]*#(?!\s*define)(?:[^\n\\]|\\.|\\\n)*", blank, LITERALS.sub(blank, text), flags=re.M)


def functions_of(path: Path, text: str) -> list[Function]:
    """Definitions with a body, methods inside of classes too, lambdas not."""
    found = []
    containers = [True]  # of each open brace: may a function be defined right inside?
    begins: list[tuple[int, str, bool, bool, bool, str] | None] = [None]
    anonymous = [False]  # of each open brace: is it an anonymous namespace?
    namespaces = [True]  # and: is it a namespace at all?
    names_of_spaces = [""]  # and: its name, where it has one
    ends_of_lines = [m.start() for m in re.finditer(r"\n", text)]
    start = 0  # of the text since the last brace or semicolon: what stands before a brace says what that opens
    parentheses = 0
    for m in re.finditer(r"[{};()]", text):
        c, at = m[0], m.start()
        if c in "()":
            parentheses += 1 if c == "(" else -1
            continue
        if parentheses > 0 and c == ";":
            continue
        if c == "{":
            head = text[start:at]
            opened = None
            inside = False
            if containers[-1] and parentheses == 0:
                if CONTAINER.search(head):
                    inside = True
                elif ")" in head and not re.search(r"=\s*$|\boperator\s*=\s*$|=[^=]*$", head.split("(", 1)[0]):
                    names = [n["name"] for n in NAME.finditer(head) if n["name"] not in KEYWORDS]
                    if names:
                        body_line = bisect(ends_of_lines, start + len(head) - len(head.lstrip()) - 1)
                        is_method = bool(
                            re.search(rf"::\s*{re.escape(names[0])}\s*\(", head)
                        )  # written outside of its class
                        is_override = "override" in head or "final" in head
                        is_free = namespaces[-1] and not is_method
                        scope = "::".join(filter(None, names_of_spaces))
                        opened = (body_line, names[0], is_override, anonymous[-1] and not is_method, is_free, scope)
            containers.append(inside)
            anonymous.append(inside and bool(re.search(r"\bnamespace\s*$", head)))
            space = re.search(r"\bnamespace\b\s*([\w\s:]*)$", head) if inside else None
            namespaces.append(space is not None)
            names_of_spaces.append(space[1].strip() if space else "")
            begins.append(opened)
        elif c == "}":
            if len(containers) > 1:
                containers.pop()
                anonymous.pop()
                namespaces.pop()
                names_of_spaces.pop()
                opened = begins.pop()
                if opened:
                    line = opened[0]
                    length = bisect(ends_of_lines, at) - line + 1
                    found.append(Function(path, line + 1, length, *opened[1:]))
        if parentheses == 0:
            start = at + 1
    return found


def find_cycles(files: dict[Path, str]) -> list[list[str]]:
    graph = {
        str(p.relative_to(ROOT / "src")): [i for i in INCLUDE.findall(t)] for p, t in files.items() if p.suffix != ".cc"
    }
    cycles = []
    state: dict[str, int] = {}
    stack: list[str] = []

    def visit(f: str) -> None:
        state[f] = 1
        stack.append(f)
        for target in graph.get(f, []):
            if target not in graph:
                continue
            if state.get(target) == 1:
                cycles.append(stack[stack.index(target) :] + [target])
            elif target not in state:
                visit(target)
        stack.pop()
        state[f] = 2

    for f in sorted(graph):
        if f not in state:
            visit(f)
    return cycles


def unused(
    functions: list[Function], files: dict[Path, str], clean: dict[Path, str]
) -> tuple[list[Function], list[Function]]:
    """Functions that nothing calls, and those that only tests call."""
    in_code: Counter[str] = Counter()
    in_tests: Counter[str] = Counter()
    for path, text in clean.items():
        counter = in_tests if is_test(path) else in_code
        counter.update(WORD.findall(text))
        counter.update(re.findall(r'"(\w+)"', files[path]))  # dlsym, CPython's tables of methods
    overrides = {f.name for f in functions if f.is_method_override}  # called by the base class
    declared: Counter[str] = Counter()  # places that name a function without calling it
    for f in functions:
        declared[f.name] += 1
    for path, text in clean.items():
        for statement in re.findall(r"[^;{}]+;", text) if path.suffix == ".h" else []:
            head, parenthesis, rest = statement.strip().partition("(")
            words = head.split()
            if (
                parenthesis
                and len(words) > 1
                and "=" not in head
                and words[0] not in {"return", "else", "throw", "case"}
            ):
                declared[words[-1].lstrip("&*")] += 1
                if re.search(r"\b(override|final)\b", rest):
                    overrides.add(words[-1].lstrip("&*"))
    nobody, tests_only = [], []
    for f in functions:
        n = f.name
        if (
            is_test(f.path)
            or n in CALLED_FROM_OUTSIDE
            or n.startswith(("~", "operator"))
            or n in overrides
            or n[:1].isupper()
        ):
            continue  # upper case: constructors and macros
        if in_code[n] > declared[n]:
            continue
        (tests_only if in_tests[n] else nobody).append(f)
    return nobody, tests_only


def repeated(files: dict[Path, str]) -> list[tuple[int, Path, int, Path, int]]:
    """Passages of at least PASSAGE lines that stand twice: length, and both places."""
    places: dict[int, tuple[Path, int]] = {}
    lines: dict[Path, list[tuple[int, str]]] = {}
    found: dict[tuple[Path, Path, int], tuple[int, int, int]] = {}
    for path, text in files.items():
        if is_test(path) or path.name.startswith("meta_table_part"):  # generated
            continue
        text = blanked(text, comments_only=True)
        lines[path] = [
            (n, " ".join(row.split()))
            for n, row in enumerate(text.splitlines(), 1)
            if len(row.strip()) > 2 and not row.startswith("#include")
        ]
        for i in range(len(lines[path]) - PASSAGE + 1):
            key = hash(tuple(row for _, row in lines[path][i : i + PASSAGE]))
            if key not in places:
                places[key] = (path, i)
                continue
            other, j = places[key]
            if other == path and i - j < PASSAGE:
                continue
            run = (other, path, i - j)
            length, first, second = found.get(run, (PASSAGE - 1, j, i))
            found[run] = (length + 1, first, second)
    out = [(n, a, lines[a][i][0], b, lines[b][j][0]) for (a, b, _), (n, i, j) in found.items()]
    return sorted(out, key=lambda r: -r[0])


def compiled_alone() -> set[Path]:
    """Files that CMakeLists.txt gives options of their own: they are in no batch."""
    settings = (ROOT / "CMakeLists.txt").read_text()
    return {
        ROOT / name
        for call in re.findall(r"set_source_files_properties\(([^)]*)\)", settings)
        if re.search(r"SKIP_UNITY_BUILD_INCLUSION|COMPILE_OPTIONS", call)
        for name in re.findall(r"src/\S+\.cc", call)
    }


def target_of(path: Path) -> Path:
    """The folder whose files are compiled together: "src/compiler/capture" for its rooms, too."""
    return ROOT.joinpath(*path.relative_to(ROOT).parts[:3])


def two_meanings(files: dict[Path, str]) -> list[str]:
    """Short names (`using Row = …`) that mean one thing in one file of a folder and another thing in the next, and constants of one name."""
    alone = compiled_alone()
    meanings: dict[tuple[Path, str], dict[str, Path]] = {}
    for path, text in files.items():
        if path.suffix != ".cc" or is_test(path) or path in alone:
            continue
        for name, meaning in re.findall(r"^using (\w+) = ([^;]+);", text, re.M):
            meanings.setdefault((target_of(path), name), {}).setdefault(meaning, path)
        for meaning in re.findall(r"^using ([\w:]+::\w+);", text, re.M):
            meanings.setdefault((target_of(path), meaning.rsplit("::")[-1]), {}).setdefault(meaning, path)
        for line in re.findall(r"^(?:inline |static )*const(?:expr|init)? [^(=;]*[=;{][^\n]*", text, re.M):
            for name in re.findall(r"\b(k[A-Z]\w*)\b(?=\s*(?:\[[^\]]*\])*\s*[={])", line):
                meanings.setdefault((target_of(path), name), {}).setdefault(f"that of {path.name}", path)
    return [
        f"{name}  " + ", ".join(f"{m} in {p.relative_to(ROOT)}" for m, p in found.items())
        for (_, name), found in meanings.items()
        if len(found) > 1
    ]


def clashes(functions: list[Function]) -> list[tuple[Function, Function]]:
    """A function in an anonymous namespace, and one of the same name in another file of the folder, in the same named namespace.
    Compiled as one file (docs/notes/build.md) they are overloads: a call may take the other one, without a word."""
    alone = compiled_alone()
    by_name: dict[tuple[Path, str, str], list[Function]] = {}
    for f in functions:
        if f.is_free and f.path.suffix == ".cc" and not is_test(f.path) and f.path not in alone:
            by_name.setdefault((target_of(f.path), f.scope, f.name), []).append(f)
    found = []
    for same in by_name.values():
        for f in same:
            other = next((o for o in same if o.path != f.path), None)
            if f.is_anonymous and other and (not other.is_anonymous or other.path < f.path):
                found.append((other, f))
    return found


def is_test(path: Path) -> bool:
    return path.stem.endswith(("_test", "_fuzz")) or path.relative_to(ROOT).parts[0] != "src"


def run_clang_tidy() -> int:
    tidy = shutil.which("clang-tidy")
    if not tidy:
        print("clang-tidy: not installed, its checks were left out")
        return 0
    commands = ROOT / "build/cxx/compile_commands.json"
    base = (
        subprocess.run(
            ["git", "merge-base", "HEAD", "origin/main"], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()
        or "HEAD"
    )
    names = subprocess.run(
        ["git", "diff", "--name-only", base, "--", "src"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    sources = [n for n in names if n.endswith(".cc") and not n.endswith("_test.cc") and (ROOT / n).exists()]
    if not sources or not commands.exists():
        print(
            f"clang-tidy: {'no changed files' if commands.exists() else 'no build/cxx/compile_commands.json; try: make build'}"
        )
        return 0
    checks = "-*,bugprone-*,performance-*,-bugprone-easily-swappable-parameters,-bugprone-assignment-in-if-condition,-performance-enum-size"
    command = [
        tidy,
        "-p",
        str(commands.parent),
        "--quiet",
        f"--checks={checks}",
        f"--header-filter={ROOT}/src/.*",
        "--extra-arg=-Wno-everything",
    ]
    return subprocess.run([*command, *sources], cwd=ROOT).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang-tidy", action="store_true")
    parser.add_argument("--top", type=int, default=10)
    options = parser.parse_args()
    folders = ["src", "tests", "examples", "bench"]
    files = {
        p: p.read_text() for d in folders for p in sorted((ROOT / d).rglob("*")) if p.suffix in {".h", ".cc", ".inc"}
    }
    clean = {p: blanked(t) for p, t in files.items()}
    in_src = {p: t for p, t in files.items() if p.is_relative_to(ROOT / "src")}
    functions = [f for p in clean for f in functions_of(p, clean[p])]

    def place(path: Path, line: int) -> str:
        return f"{path.relative_to(ROOT)}:{line}"

    print("longest files")
    for path, text in sorted(in_src.items(), key=lambda item: -item[1].count("\n"))[: options.top]:
        print(f"  {text.count(chr(10)):5}  {path.relative_to(ROOT)}")
    print("longest functions")
    own = [f for f in functions if not is_test(f.path)]
    for f in sorted(own, key=lambda f: -f.length)[: options.top]:
        print(f"  {f.length:5}  {f.name}  {place(f.path, f.line)}")
    nobody, tests_only = unused(functions, files, clean)
    print(f"functions that nothing calls: {len(nobody)}")
    for f in nobody:
        print(f"         {f.name}  {place(f.path, f.line)}")
    print(
        f"functions that only tests call: {len(tests_only)}"
        + (": " + ", ".join(sorted(f.name for f in tests_only)) if tests_only else "")
    )
    passages = repeated(files)
    print(f"passages of {PASSAGE} lines and more that stand twice: {len(passages)}")
    for n, a, i, b, j in passages[: options.top]:
        print(f"  {n:5}  {place(a, i)}  {place(b, j)}")
    pairs = clashes(functions)
    for a, b in pairs:
        print(f"one name for two functions of a folder: {a.name}  {place(a.path, a.line)}  {place(b.path, b.line)}")
    names = two_meanings(clean)
    for name in names:
        print(f"one name for two things of a folder: {name}")
    cycles = find_cycles(in_src)
    for cycle in cycles:
        print("include cycle: " + " -> ".join(cycle))
    print(
        f"C++: {len(in_src)} files, {len(own)} functions, {sum(f.length > 60 for f in own)} above 60 lines, {len(cycles)} include cycles"
    )
    status = run_clang_tidy() if options.clang_tidy else 0
    return 1 if cycles or pairs or names or status else 0


if __name__ == "__main__":
    sys.exit(main())
