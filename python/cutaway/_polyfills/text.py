"""``str.format`` and ``%`` where something that is formatted says itself how it looks. C does the rest, and the words of its errors."""

from __future__ import annotations

from typing import Any

from .answers import give_up


def format_text(template: str, /, *args: Any, **kwargs: Any) -> str:
    return _fill(template, args, kwargs, [0, ""], 2)


def _fill(text: str, args: tuple[Any, ...], kwargs: dict[str, Any], counted: list[Any], depth: int) -> str:
    """``counted``: the next number, and how fields are numbered."""
    if depth == 0:
        raise ValueError("Max string recursion exceeded")
    parts: list[str] = []
    at = 0
    size = len(text)
    while at < size:
        c = text[at]
        if c != "{" and c != "}":
            end = at + 1
            while end < size and text[end] != "{" and text[end] != "}":
                end += 1
            parts.append(text[at:end])
            at = end
        elif text[at + 1 : at + 2] == c:
            parts.append(c)
            at += 2
        elif c == "}":
            raise ValueError("Single '}' encountered in format string")
        else:
            level = 1
            end = at + 1
            while end < size and level:
                level += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            if level:
                give_up("text is formatted by a template that does not end")
            part = _field(text[at + 1 : end - 1], args, kwargs, counted, depth)
            if type(part) is not str:
                give_up("text is formatted with an instance of a class below str")  # it may be the result itself
            parts.append(part)
            at = end
    return "".join(parts)


def _field(field: str, args: tuple[Any, ...], kwargs: dict[str, Any], counted: list[Any], depth: int) -> str:
    end = 0
    while end < len(field) and field[end] != "!" and field[end] != ":":
        if field[end] == "[":
            while end < len(field) and field[end] != "]":
                end += 1
        end += 1
    value = _looked_up(field[:end], args, kwargs, counted)
    spec = field[end + 1 :]
    if field[end : end + 1] == "!":
        how, rest = spec[:1], spec[1:]
        if how not in ("r", "s", "a") or (rest and rest[0] != ":"):
            give_up("text is formatted with an unknown conversion")
        value = repr(value) if how == "r" else str(value) if how == "s" else ascii(value)
        spec = rest[1:]
    if "{" in spec or "}" in spec:
        spec = _fill(spec, args, kwargs, counted, depth - 1)
    return format(value, spec)


def _looked_up(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], counted: list[Any]) -> Any:
    end = 0
    while end < len(name) and name[end] != "." and name[end] != "[":
        end += 1
    first = name[:end]
    if first == "" or first.isdigit():
        how = "automatic" if first == "" else "manual"
        if counted[1] == "":
            counted[1] = how
        if counted[1] != how:
            if how == "automatic":
                raise ValueError("cannot switch from manual field specification to automatic field numbering")
            raise ValueError("cannot switch from automatic field numbering to manual field specification")
        number = counted[0] if first == "" else int(first)
        counted[0] += 1
        if number >= len(args):
            raise IndexError(f"Replacement index {number} out of range for positional args tuple")
        value = args[number]
    else:
        value = kwargs[first]
    rest = name[end:]
    while rest:
        if rest[0] == ".":
            end = 1
            while end < len(rest) and rest[end] != "." and rest[end] != "[":
                end += 1
            if end == 1:
                raise ValueError("Empty attribute in format string")
            value = getattr(value, rest[1:end])
            rest = rest[end:]
        else:
            end = rest.find("]")
            if rest[0] != "[" or end < 2:
                give_up("text is formatted by a template whose fields are not well formed")
            key = rest[1:end]
            value = value[int(key) if key.isdigit() else key]
            rest = rest[end + 1 :]
    return value


def percent_text(template: str, values: Any) -> str:
    many = isinstance(values, tuple)
    parts: list[str] = []
    used = 0
    by_name = False
    at = 0
    while at < len(template):
        sign = template.find("%", at)
        if sign < 0:
            parts.append(template[at:])
            break
        parts.append(template[at:sign])
        at = sign + 1
        if template[at : at + 1] == "%":
            parts.append("%")
            at += 1
            continue
        name = None
        if template[at : at + 1] == "(":
            end = template.find(")", at)
            if end < 0 or "(" in template[at + 1 : end] or many:
                give_up("text is formatted by a template whose names are not well formed")
            name = template[at + 1 : end]
            by_name = True
            at = end + 1
        end = at
        while end < len(template) and template[end] in "#0- +.123456789":
            end += 1
        flags, how = template[at:end], template[end : end + 1]
        if how == "" or how not in "sradiouxXeEfFgGc":
            give_up("text is formatted by a template that C has its own words for")
        at = end + 1
        if name is not None:
            value = values[name]
        elif used >= (len(values) if many else 1):
            raise TypeError("not enough arguments for format string")
        else:
            value = values[used] if many else values
            used += 1
        if how in "sra":
            value = str(value) if how == "s" else repr(value) if how == "r" else ascii(value)
            if type(value) is not str:
                give_up("text is formatted with an instance of a class below str")  # it may be the result itself
            how = "s"
        elif not isinstance(value, (int, float, str)):
            give_up("a number is made of an object by formatting it")
        parts.append(("%" + flags + how) % (value,))
    if not by_name:
        if many and used < len(values):
            raise TypeError("not all arguments converted during string formatting")
        if not many and used == 0:
            give_up("text is formatted without a place for the value")
    return "".join(parts)
