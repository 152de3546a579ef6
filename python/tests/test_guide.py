"""The guide's code runs, and prints what the guide says."""

import contextlib
import io
import re

import matplotlib
import pytest
from conftest import ROOT

matplotlib.use("Agg")


def blocks(path):
    """Code, and the output that is shown below it (or none)."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, flags=re.DOTALL | re.MULTILINE)
    assert found, f"no code in {path}"
    return found


@pytest.mark.parametrize("file", ["docs/python.md", "python/README.md"])
def test_code_prints_what_is_shown(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code, shown in blocks(ROOT / file):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, file, "exec"), names)
        if shown:
            assert printed.getvalue() == shown
        else:
            print(printed.getvalue())
