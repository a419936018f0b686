"""Pages that need nothing but themselves: templates, with the pictures of a folder inside."""

import base64
import os
from pathlib import Path
from urllib.parse import quote

import jinja2

from dlsim import files


def duration(seconds: float) -> str:
    """Say how long a run took."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def pages_of(folder: Path, *templates: files.StrPath) -> jinja2.Environment:
    """Return the templates of the suite and beside the files named, for a page in a folder.

    What comes from outside is escaped. `there` finds a file of the folder; the filters `embedded`
    and `address` write a picture into the page and the way to a file.
    """

    def there(place: str) -> Path | None:
        return path if (path := folder / place).is_file() else None

    def address(path: Path) -> str:
        return quote(Path(os.path.relpath(path, folder)).as_posix(), safe="/#.-")

    def embedded(path: Path) -> str:
        return "data:image/png;base64," + base64.b64encode(files.read_bytes(path)).decode("ascii")

    places = [Path(path).parent for path in (*templates, __file__)]
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(places), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    pages.filters |= {"embedded": embedded, "duration": duration, "address": address}
    pages.globals["there"] = there
    return pages
