"""Runs a notebook's cells in this Python, without a notebook runner: run_cells.py FILE.

It shows that the notebook needs nothing but what this Python has. What a notebook would display is
made and thrown away.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

#: What a notebook asks of the value at a cell's end, besides its text.
FORMS = ("_repr_html_", "_repr_svg_")


def run(file: Path) -> int:
    """Runs the cells in order; how many there were."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for number, code in enumerate(codes, 1):
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        where = f"{file.name}, code cell {number}"
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            shown = [repr(value)]
            shown += [getattr(value, form)() for form in FORMS if hasattr(value, form)]
            assert all(shown), where
    return len(codes)


if __name__ == "__main__":
    print(f"{run(Path(sys.argv[1]))} cells of {sys.argv[1]} ran")
