"""How the documentation is built: Sphinx, pages in Markdown, the four kinds of Diátaxis as folders."""

project = "Counterfoil"
author = "The Counterfoil authors"
project_copyright = "The Counterfoil authors"
release = "0.1.0"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Counterfoil"
html_copy_source = False
html_show_sphinx = False
