r"""Texts of files, shown as they are: the one place where they become HTML, Markdown or a label.

A name in a log, a platform or a table is data. Jupyter trusts what a cell shows: HTML is put into
the page as it is, Markdown may hold HTML and links, and a dollar begins a formula, in which
``\href`` makes a link. Every text of a file therefore passes one of these functions before a
notebook shows it: `shown_text` in Markdown and HTML, `shown_label` in a picture, `shown_table` in a
styled table. Tables of pandas that are shown without a style escape HTML themselves, and
`show_tables_without_formulas` keeps formulas out of them.
"""

import html
import re
from typing import TYPE_CHECKING, Any

from dlsim.progress import running_shell

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

#: Class of an element in which JupyterLab (MathJax 3) and pages set no formulas.
WITHOUT_FORMULAS = "mathjax_ignore"
#: All but letters, digits, and single blanks within a text.
_NOT_PLAIN = re.compile(r"[^\w ]|_|^ | (?= )| $")
#: Characters that begin or end a formula. MathJax and pages look for one in the text between two
#: tags, so that a tag around the character is the end of it.
_OF_FORMULAS = "$\\"


def visible_text(text: object) -> str:
    r"""Return a text in which characters that cannot be seen are written as Python writes them.

    These are line breaks, control characters, and those that change the direction of writing.

    >>> print(visible_text("two\nlines, \u202eturned"))
    two\nlines, \u202eturned
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii")
        for one in str(text)
    )


def shown_text(text: object) -> str:
    """Return a text so that Markdown and HTML show it, and nothing in it becomes markup.

    All but letters, digits and blanks are written as entities, which have no meaning in Markdown.

    >>> shown_text("ann <b> [x](y)")
    'ann &#60;b&#62; &#91;x&#93;&#40;y&#41;'
    >>> shown_text("$x$")
    '<span>&#36;</span>x<span>&#36;</span>'
    """

    def entity(found: re.Match[str]) -> str:
        code = f"&#{ord(found[0])};"
        return f"<span>{code}</span>" if found[0] in _OF_FORMULAS else code

    return _NOT_PLAIN.sub(entity, visible_text(text))


def shown_label(text: object) -> str:
    r"""Return a text so that matplotlib draws it, and a dollar begins no formula.

    >>> print(shown_label("$x$"))
    \$x\$
    """
    return visible_text(text).replace("$", r"\$")


def shown_table(table: "pd.DataFrame") -> "Styler":
    """Return a table to be styled, in which every text stands as it is: cells, labels and names.

    Formats of cells may follow. A `format_index` that follows must be for labels that are numbers.
    """
    from pandas.api.types import is_numeric_dtype

    def as_html(value: Any) -> Any:
        return html.escape(visible_text(value), quote=False) if isinstance(value, str) else value

    shown = table.copy()
    texts = shown.select_dtypes(exclude="number").map(as_html)
    shown[texts.columns] = texts
    shown = shown.rename_axis(index=as_html, columns=as_html)
    style = shown.style.set_table_attributes(f'class="{WITHOUT_FORMULAS}"')
    for axis, labels in enumerate((shown.index, shown.columns)):
        for level in range(labels.nlevels):
            if not is_numeric_dtype(labels.get_level_values(level)):  # numbers keep their format
                style = style.format_index(as_html, axis=axis, level=level)  # type: ignore[arg-type]
    return style


def show_tables_without_formulas() -> None:
    """Let the notebook that runs this show tables of pandas without formulas in them."""
    if (shell := running_shell()) is not None:
        import pandas as pd

        shell.display_formatter.formatters["text/html"].for_type(pd.DataFrame, table_as_html)


def table_as_html(table: Any) -> Any:
    """Return what pandas shows of a table, without formulas; None where it shows plain text.

    pandas has an option for it, which has no effect on MathJax 3 before pandas 3.
    """
    shown = table._repr_html_()
    return shown and shown.replace('class="dataframe', f'class="{WITHOUT_FORMULAS} dataframe', 1)
