"""Runs the notebook of the examples without Jupyter, and writes its outputs:

    python -m testbed.notebook examples/memory.ipynb

A cell's value is shown by its method `_repr_svg_`, as Jupyter does. What is printed is text. Nothing else can
be shown, so that a test can run it with what the project has anyway.
"""

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Cell = dict[str, Any]  # JSON of the notebook format


def executed(notebook: dict[str, Any]) -> list[list[Cell]]:
    """The outputs of each code cell, run in order in one namespace."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_outputs("".join(cell["source"]), names, number) for number, cell in enumerate(cells, 1)]


def _outputs(source: str, names: dict[str, Any], number: int) -> list[Cell]:
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value: Any = None  # whatever the cell ends with
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[Cell] = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if hasattr(value, "_repr_svg_"):
        data = {
            "image/svg+xml": value._repr_svg_().splitlines(keepends=True),
            "text/plain": [f"<{type(value).__name__}>"],
        }
        outputs.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(cells, executed(notebook), strict=True), 1):
        cell["execution_count"], cell["outputs"] = number, outputs
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
