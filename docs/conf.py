"""How the site is built: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``.

Pages are Markdown that also reads well where Markdown is shown as it stands. What only Sphinx can
do lives in ``_ext``: formulas, the reference of the API, what is said of every metric.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

project = "krag_eval"
author = "The krag_eval founders"
copyright = f"{author}, MIT licence"
version = release = re.findall(
    r'^__version__ = "(.+)"', (HERE.parent / "krag_eval/__init__.py").read_text("utf-8"), re.M
)[0]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "api_pages",
    "code_blocks",
    "mathml",
    "metric_cards",
    "moved_pages",
    "pages_found",
    "two_languages",
]
exclude_patterns = ["_build", "_ext", "images", "measured"]
templates_path = ["_templates"]

# Every reference must lead somewhere; ``api_pages`` says which types are no pages of ours.
nitpicky = True

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
myst_all_links_external = False
# A notebook is shown with the outputs it was saved with; CI runs it elsewhere.
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # the default loads scripts from another host
nb_mime_priority_overrides = [("linkcheck", "text/html", 0), ("linkcheck", "image/png", 1)]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
add_module_names = False

html_theme = "furo"
html_title = f"krag_eval {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/language.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

# ``-b linkcheck`` asks other hosts and needs a network; ``-D linkcheck_ignore=http`` leaves them
# out. Links and anchors within the site are checked by every build.
linkcheck_timeout = 20
linkcheck_retries = 2
