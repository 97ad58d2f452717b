"""The line for pip that installs this package, which is on no index."""

from __future__ import annotations

import json
import os
import re

from krag_eval.core.language import _

# What the project's metadata may call the repository: the well-known labels for it, without case
# and punctuation (packaging.python.org, "Well-known Project URLs in Metadata").
_REPOSITORY = {"source", "repository", "sourcecode", "github"}


def install_line(extra: str = "") -> str:
    """Return the line that installs this package, perhaps with an extra.

    The package is not on an index, so pip needs its repository, if the metadata names one, else
    the folder it was installed from. Where neither is known, the user fills in the folder.

    >>> install_line("korean").startswith("pip install ")
    True
    """
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    wanted = f"[{extra}]" if extra else ""
    clone = _("<path of the clone>")
    unknown = f'pip install "{clone}{wanted}"'
    try:
        installed = distribution("krag-eval")
    except PackageNotFoundError:  # on the path, and not installed
        return unknown
    for entry in installed.metadata.get_all("Project-URL") or ():
        label, _comma, url = entry.partition(",")
        if re.sub(r"[\W_]", "", label).lower() in _REPOSITORY:
            return f'pip install "krag-eval{wanted} @ git+{url.strip()}"'
    origin = json.loads(installed.read_text("direct_url.json") or "{}")  # see PEP 610
    if "dir_info" in origin:
        folder = url2pathname(urlsplit(origin["url"]).path)
        editable = "-e " if origin["dir_info"].get("editable") else ""
        if os.path.isdir(folder):
            return f'pip install {editable}"{folder}{wanted}"'
    return unknown
