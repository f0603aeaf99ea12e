"""The reference of the Python package, from its source: signatures and docstrings of all that `__all__` and `opentcp.plot` have."""

import ast
import inspect
import pathlib
import re

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python/opentcp"
HEAD = """# The Python API

[The Python package](../python.md) has examples. This page is written from the package's docstrings.
"""
# What a reader looks for first.
GROUPS = [
    ("Scenarios and runs", ["Scenario", "Result", "Sweep", "Summary", "Slowdown", "SlowdownOf", "Table", "Column", "Progress"]),
    ("Policies", ["Policy", "Decision", "Trial", "Change"]),
    ("Studies", ["studies", "study", "Study", "Comparison"]),
    ("Algorithms", ["algorithms", "Algorithm", "BuiltIn"]),
    ("Exceptions", ["OpenTCPError", "InputError", "ScenarioError", "PolicyError", "RunError", "Diagnostic"]),
]


def update(page, write):
    """Compares the page with the source, or writes it. What is wrong, as a list of sentences."""
    text = reference()
    if write:
        page.write_text(text, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        return [f"docs/reference/{page.name} is not what the package's docstrings say: run `make reference`"]
    return []


def reference():
    init, definitions = parsed(PACKAGE / "__init__.py"), {}
    for file in sorted(PACKAGE.glob("_*.py*")):
        definitions |= {node.name: (node, file) for node in parsed(file).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assigned = [node for node in parsed(file).body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
        definitions |= {node.targets[0].id: (node, file) for node in assigned if node.targets[0].id not in definitions}
    everything = next(ast.literal_eval(node.value) for node in init.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    parts, listed = [HEAD], {name for _, names in GROUPS for name in names}
    others = [name for name in everything if name not in listed and not name.startswith("__") and name in definitions]
    for title, names in [*GROUPS, ("More", others)]:
        entries = [entry(definitions[name][0]) for name in names if name in everything]
        if entries:
            parts += [f"## {title}\n", *entries]
    plot = parsed(PACKAGE / "plot.py")
    parts += ["## opentcp.plot\n", text(ast.get_docstring(plot))]
    parts += [entry(node) for node in plot.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    return "\n".join(parts).rstrip() + "\n"


def parsed(file):
    source = file.read_text(encoding="utf-8")
    lines, tree = source.splitlines(), ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            # a comment `#: …` above a field explains it
            above = lines[node.lineno - 2].strip()
            node.said = above.removeprefix("#:").strip() if above.startswith("#:") else ""
    return tree


def entry(node):
    """A heading, the signature, the docstring; of a class its attributes and methods."""
    if isinstance(node, ast.FunctionDef):
        return f"### {node.name}\n\n```python\n{signature(node)}\n```\n\n{text(ast.get_docstring(node))}"
    if isinstance(node, ast.Assign):
        return f"### {node.targets[0].id}\n\n```python\n{ast.unparse(node)}\n```\n"
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    head = f"### {node.name}\n\n" + (f"A {bases}. " if bases else "") + text(ast.get_docstring(node))
    rows = [row for row in map(attribute, node.body) if row]
    table = "| attribute | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return "\n".join(part for part in [head, table, *methods(node)] if part)


def attribute(node):
    """A row for a field or a property."""
    if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
        return f"| `{node.target.id}` | `{kind(node.annotation)}` | {text(node.said).strip()} |"
    if is_property(node) and not node.name.startswith("_"):
        sentence = " ".join((ast.get_docstring(node) or "").split())
        return f"| `{node.name}` | `{kind(node.returns)}` | {text(sentence).strip()} |"
    return None


def methods(node):
    """Signature and docstring of each public method; overloads together."""
    seen = {}
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not is_property(method):
            # what the package alone makes has no constructor for users
            made = method.name == "__init__" and "_native" not in ast.unparse(method.args)
            if made or not method.name.startswith("_"):
                seen.setdefault(method.name, []).append(method)
    for name, versions in seen.items():
        overloads = [version for version in versions if decorated(version, "overload")]
        shown = "\n".join(signature(version, of=node.name) for version in overloads or versions)
        words = text(ast.get_docstring(versions[-1]))
        title = node.name if name == "__init__" else f"{node.name}.{name}"
        yield f"#### {title}{'()' if name == '__init__' else ''}\n\n```python\n{shown}\n```\n\n{words}"


def signature(node, of=None):
    """As it is called, without self."""
    arguments = ast.unparse(node.args)
    if of:
        arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    name = of if node.name == "__init__" else f"{of}.{node.name}" if decorated(node, "classmethod") else node.name
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{name}({arguments}){result}"


def kind(annotation):
    return ast.unparse(annotation).replace("|", "\\|") if annotation else ""


def decorated(node, name):
    return any(isinstance(decorator, ast.Name) and decorator.id == name for decorator in node.decorator_list)


def is_property(node):
    return isinstance(node, ast.FunctionDef) and decorated(node, "property")


def text(docstring):
    """A docstring as Markdown, with a newline at its end."""
    return re.sub(r"``([^`]+)``", r"`\1`", inspect.cleandoc(docstring or "")) + "\n" if docstring else ""
