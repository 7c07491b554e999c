"""How the documentation is built: Sphinx, pages in Markdown, the four kinds of Diátaxis as folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Counterfoil"
author = "The Counterfoil authors"
project_copyright = "The Counterfoil authors"
release = "0.1.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# The Python reference is made from the docstrings. They write names between single backticks, as the pages do.
default_role = "literal"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

# Types that a signature names and this documentation does not describe.
nitpick_ignore_regex = [
    # The standard library's, SQLAlchemy's and OpenTelemetry's: their own documentation describes them, and this build
    # needs no network.
    (r"py:.*", r"(_asyncio|asyncio|collections|concurrent|datetime|random|threading|types|typing)\..*"),
    (r"py:.*", r"(sqlalchemy|sa|opentelemetry)\..*"),
    # The frameworks' own types.
    (r"py:.*", r"(mcp|mcp_types|pydantic_ai)\..*"),
    # A union of a name and a subscript, which Sphinx takes apart at the wrong place.
    (r"py:class", r"int \| ~?collections\.abc\.Mapping\[str"),
    # How the host does its work in the background, for tests; and a row of the table of codes.
    (r"py:class", r"counterfoil\.(host\.Host|codes\.Code)"),
    # What the gauge is given is an executor.
    (r"py:.*", r"counterfoil\.adapters\.telemetry\.Audited"),
    # Type variables, and the types of `ALL_ARGUMENTS` and of what `tool(...)` returns: nobody needs to name them.
    (r"py:.*", r"counterfoil\.(effect\.R_co|tool\.[PR]|tool\.Decorator|identity\.AllArguments)"),
]

html_theme = "furo"
html_title = "Counterfoil"
html_copy_source = False
html_show_sphinx = False


def _keep_first_sentence(_app: Sphinx, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Napoleon takes the words before a colon in a property's first line for its type: an empty comment goes first."""
    if what == "property":
        lines[:0] = ["..", ""]


def setup(app: Sphinx) -> None:
    """Called by Sphinx. The priority puts the handler before napoleon's."""
    app.connect("autodoc-process-docstring", _keep_first_sentence, priority=400)
