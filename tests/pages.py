"""The documents, and how what they show is tried."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text("utf-8")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ON_SPARK = [page for page in WITH_CODE if any("wane.spark" in code for _, code in FENCE.findall(page.read_text()))]


def runs(page: str) -> None:
    """Run a page's blocks of Python in one namespace, in order; a block of text after one is what it prints."""
    blocks = FENCE.findall(page)
    namespace: dict[str, object] = {"__name__": "page"}
    for (language, code), (next_language, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "page", "exec"), namespace)
        if next_language == "text":
            assert printed.getvalue() == shown
