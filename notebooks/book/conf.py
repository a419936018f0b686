"""Settings of the book; ``dlsim reproduce --book`` puts the notebooks of a run beside this file."""

from docutils.nodes import SkipNode

from dlsim import __version__
from dlsim.study.pages import mathml

project, author, language = "dlsim", "The dlsim authors", "en"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc"]
html_title, html_theme, html_math_renderer = "dlsim", "furo", "mathml"
html_copy_source = html_show_sphinx = html_show_copyright = False
html_extra_path = ["run"]  # pictures and tables of the run
exclude_patterns = ["run"]
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # a page asks no server for anything
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"
suppress_warnings = ["mystnb.unknown_mime_type", "myst.xref_missing"]


def setup(app):
    """Let Sphinx write formulas as MathML, which a browser sets without help."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))


def write_inline(writer, node):
    """Write a formula in a sentence."""
    writer.body.append(mathml(node.astext()))
    raise SkipNode


def write_block(writer, node):
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="math" tabindex="0">{mathml(node.astext(), block=True)}</div>')
    raise SkipNode
