"""Writes src/core/trace/shape_rules/meta_table_generated_*.inc: one row per operator overload that has a C++ meta kernel in torch.

    python tools/generate_meta_table.py INCLUDE [INCLUDE...] --out src/core/trace/shape_rules

INCLUDE is the `include` folder of an installed torch. With several, only rows that all of them have are written, so that
the files compile against each. Rows are found by signature: ATen/ops/*_ops.h gives the C++ type of each overload,
ATen/ops/*_meta_dispatch.h the functions at::meta::*; a row is written where the two agree exactly.
"""

from __future__ import annotations

import argparse
import pathlib
import re

PARTS = 4  # files, so that they compile side by side

# Kept out: what returns no tensor, sparse constructors, and operators whose C++ kernel reads more than metadata.
LEFT_OUT = re.compile(r"_sparse_|_convert_indices|_fused_sdp_choice|_assert_|^hash_tensor|^normal|set_|resize")

Signature = tuple[str, tuple[str, ...]]


def split_commas(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    return [*parts, current] if current.strip() else parts


def squeeze(type_text: str) -> str:
    return re.sub(r"\s+", "", type_text.replace("::std::", "std::"))


def parameter_type(declaration: str) -> str:
    return squeeze(re.sub(r"\b\w+$", "", declaration.split("=")[0].strip()))


def meta_functions(ops: pathlib.Path) -> dict[tuple[str, Signature], str]:
    found = {}
    for header in sorted(ops.glob("*_meta_dispatch.h")):
        for line in header.read_text().splitlines():
            if m := re.match(r"TORCH_API (.*?) (\w+)\((.*)\);$", line.strip()):
                types = tuple(parameter_type(p) for p in split_commas(m[3]))
                found[m[2], (squeeze(m[1]), types)] = header.name
    return found


def rows_of(include: pathlib.Path) -> dict[str, tuple[str, str, str]]:
    """Overload struct -> (function in at::meta, its header, header of the struct)."""
    ops = include / "ATen" / "ops"
    functions = meta_functions(ops)
    pattern = re.compile(
        r"struct TORCH_API (\w+) \{\s*using schema = ([^\n]*?) \(([^\n]*)\);\s.*?\bname = \"aten::(.*?)\";", re.S
    )
    rows = {}
    for header in sorted(ops.glob("*_ops.h")):
        for m in pattern.finditer(header.read_text()):
            signature = squeeze(m[2]), tuple(squeeze(p) for p in split_commas(m[3]))
            base = m[4]
            if LEFT_OUT.search(base) or "Tensor" not in m[2]:
                continue
            # An in-place kernel whose functional form has no meta kernel is declared, but the library does not export it.
            if base.endswith("_") and not any(name in (base[:-1], base[:-1] + "_symint") for name, _ in functions):
                continue
            for name in (base, base + "_symint"):
                if where := functions.get((name, signature)):
                    rows[m[1]] = (name, where, header.name)
                    break
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    options = parser.parse_args()
    tables = [rows_of(i) for i in options.include]
    rows = {struct: row for struct, row in tables[0].items() if all(t.get(struct) == row for t in tables[1:])}
    names = sorted(rows)
    for part in range(PARTS):
        mine = [n for i, n in enumerate(names) if i * PARTS // len(names) == part]
        headers = sorted({h for n in mine for h in rows[n][1:]})
        lines = ["// Written by tools/generate_meta_table.py: do not edit.", "#ifdef CUTAWAY_META_TABLE_HEADERS"]
        lines += [f"#include <ATen/ops/{h}>" for h in headers]
        lines += ["#else"]
        lines += [f"CUTAWAY_META_ROW({n}, {rows[n][0]})" for n in mine]
        lines += ["#endif", ""]
        (options.out / f"meta_table_generated_{part}.inc").write_text("\n".join(lines))
    print(f"{len(names)} rows")


if __name__ == "__main__":
    main()
