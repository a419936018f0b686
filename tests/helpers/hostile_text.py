"""Texts of files that would be code, links or formulas, and what of them acts in an output."""

import re
from html.parser import HTMLParser

from nbconvert.filters import markdown2html

from dlsim.study.plain_text import WITHOUT_FORMULAS, visible_text

#: What a stranger may write where a file has a text.
HOSTILE = (
    '<img src=x onerror="window.PWN=1">',
    "<script>window.PWN=1</script>",
    '"><svg onload=window.PWN=1>',
    "' onmouseover='window.PWN=1",
    "[a](javascript:window.PWN=1)",
    "![a](x)",
    "__b__ **b** _i_ ~~s~~",
    "`c`",
    "$x$",
    r"a $\href{javascript:window.PWN=1}{y}$",
    r"\(x\) \[x\] $$x$$",
    r"\begin{equation}x\end{equation}",
    "{{7*7}} {7*7} %s @@0@@",
    "http://a.example www.a.example a@a.example <http://a.example>",
    "| a | b |",
    "# h",
    "&lt;b&gt;",
)
#: Characters that cannot be seen, where a format has room for them.
UNSEEN = ("two\nlines", "\x1b[31mred", "\u202eturned")

#: The elements and attributes of our own outputs.
OUR_TAGS = {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "p", "ul", "li", "strong"}
OUR_TAGS |= {"b", "br", "span", "code", "article"}
OUR_ATTRIBUTES = {"class", "id", "style", "scoped", "border", "colspan", "rowspan", "scope", "type"}
#: Elements in which no formula is set.
_CODE = {"style", "code", "pre"}
_EMPTY = {"br", "img", "input", "wbr", "hr"}
_FORMULA = re.compile(r"\$[^$]+\$|\\\(|\\\[|\\begin\{", re.S)


class Outline(HTMLParser):
    """The text of HTML, and what acts in it: elements, attributes and formulas not of our own."""

    def __init__(self, text, tags=OUR_TAGS):
        super().__init__()
        self.text, self.elements, self.formulas, self.open = "", [], [], []
        self.tags = tags
        self.feed(text)
        self.close()

    @property
    def faults(self):
        return self.elements + self.formulas

    def handle_starttag(self, tag, attributes):
        names = {name for name, _ in attributes}
        if tag not in self.tags or not names <= OUR_ATTRIBUTES:
            self.elements.append(self.get_starttag_text())
        if tag not in _EMPTY:
            without = WITHOUT_FORMULAS in (dict(attributes).get("class") or "").split()
            self.open.append((tag, without or tag in _CODE))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tags = [tag for tag, _ in self.open]
        if "style" not in tags:
            self.text += data
        if not any(without for _, without in self.open) and _FORMULA.search(data):
            self.formulas.append(data)


def outline_of_markdown(text):
    """The outline of Markdown, as nbconvert makes it of an output."""
    return Outline(markdown2html(text))


def outlines(outputs):
    """Yield an outline of every output of a cell that a browser takes for more than plain text."""
    for output in outputs:
        data = output.get("data", {})
        assert "text/latex" not in data
        assert "image/svg+xml" not in data
        assert "application/javascript" not in data
        if "text/html" in data:
            yield Outline("".join(data["text/html"]))
        if "text/markdown" in data:
            yield outline_of_markdown("".join(data["text/markdown"]))


def seen(text):
    """The words of a text as a reader sees it, without regard to blanks."""
    return " ".join(visible_text(text).split())


def words_of(outline):
    """The words of an outline, without regard to blanks."""
    return " ".join(outline.text.split())
