"""The page of a notebook of examples/ on the site, from its stored outputs."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

HEADING = re.compile(r"^#+ (.*)", re.MULTILINE)


def notebook_page(path: Path) -> dict[str, str | bytes]:
    """The page of a notebook, the notebook itself and its pictures, by their paths on the site."""
    files: dict[str, str | bytes] = {f"examples/{path.name}": path.read_bytes()}
    pieces: list[str] = []
    heading = path.stem
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = (HEADING.findall(text) or [heading])[-1]  # it names the pictures that follow
            pieces.append(text.replace("](../docs/", "](../").replace(".ipynb)", ".md)"))
            continue
        pieces.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            table = "".join(data.get("text/html", ""))
            if "image/png" in data:
                name = f"{path.stem}-{len(files)}.png"
                files[f"examples/{name}"] = base64.b64decode(data["image/png"])
                pieces.append(f"![{heading}]({name})")
            elif table.startswith("<table>"):  # ours; others bring styles of their own
                pieces.append(table)
            else:
                pieces.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    title, _, rest = pieces[0].partition("\n")
    link = f"[Download this notebook]({path.name}){{ download }}"
    files[f"examples/{path.stem}.md"] = "\n\n".join([title, link, rest, *pieces[1:]])
    return files
