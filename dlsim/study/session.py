"""The session of a notebook: its paper, folder of results, amount of computation and verdicts.

`start` opens a session; `sweep`, `judge`, `save` and the others use it from then on, as pyplot
uses the current figure. The sizes say how much the notebooks of a paper compute at each scale,
beside what the paper states.
"""

import importlib.util
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlsim.errors import InputError
from dlsim.files import read_bytes, read_toml, shared_file, shared_folder
from dlsim.progress import running_shell
from dlsim.study.plain_text import shown_table
from dlsim.study.results import Results
from dlsim.user_code import load_user_code, names_user_code
from dlsim.validate import format_value, mapping, one_of, whole

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

    from dlsim.study.claims import Verdict

#: Replicates of a sweep outside a session.
REPLICATES = 10
#: Switches of readings whose value may also name a user's function: the law of the sizes (papers M
#: and I), the predictor (paper B).
OPEN_SWITCHES = ("size", "predictor")


@dataclass
class Session:
    """The arguments of `start`, and the claims that were judged since."""

    paper: str = ""
    results: Results | None = None
    scale: str = "quick"
    seed: int = 0
    replicates: int = REPLICATES
    jobs: int = 0
    reading: Mapping[str, Any] = field(default_factory=dict)
    #: Verdicts by the id of the claim, in the order of judging.
    verdicts: "dict[str, Verdict]" = field(default_factory=dict)
    #: Name and digest of every sweep, as `dlsim.study.fingerprint` tells them.
    experiments: list[tuple[str, str]] = field(default_factory=list)
    #: Numbers of the figures that earlier cells of the notebook left open.
    earlier_figures: frozenset[int] = frozenset()

    @property
    def module(self) -> ModuleType:
        """The module of the paper: its measures, policies and switches."""
        return paper_module(self.paper)

    @property
    def sample(self) -> dict[str, str]:
        """What verdicts say of the sample that they rest on."""
        reading = f"reading {name_reading(self.reading)}" if self.reading else "default reading"
        return {"scale": self.scale, "sample": f"{self.scale} scale, seed {self.seed}, {reading}"}

    @property
    def folder_of_results(self) -> Results:
        """Where tables, figures and verdicts are written."""
        assert self.results is not None
        return self.results


_OPEN: list[Session] = []


def paper_module(paper: str) -> ModuleType:
    """Import the measures and constants of a paper; without claims, return an empty module."""
    name = f"dlsim.papers.{paper.replace('-', '_')}"
    has_claims = importlib.util.find_spec(name) is not None
    return importlib.import_module(name) if has_claims else ModuleType(name)


def name_reading(reading: Mapping[str, Any]) -> str:
    """Write a reading in one line: what differs from the default.

    >>> name_reading({"link": "shared", "probe": 300.0, "work_range": (90.0, 1080.0)})
    'link=shared, probe=300, work_range=90-1080'
    """
    parts = []
    for name, value in reading.items():
        if isinstance(value, tuple | list):
            text = "-".join(f"{end:.0f}" for end in value)
        else:
            text = format_value(getattr(value, "__name__", value))  # a user's function by its name
        parts.append(f"{name}={text}")
    return ", ".join(parts) or "default"


def current() -> Session:
    """Return the session that `start` opened last."""
    if not _OPEN:
        raise InputError('no paper was started: call start("mcdf") or another one first')
    return _OPEN[-1]


def sweep_defaults() -> Session:
    """Return the current session; outside one, the defaults of a sweep, with a blank paper."""
    return _OPEN[-1] if _OPEN else Session()


def read_scales(paper: str) -> dict[str, dict[str, Any]]:
    """Read the sizes of the experiments of a paper at each scale, from data/scales.toml."""
    rows = read_toml(shared_file("data/scales.toml"))
    of_paper = rows[one_of("the paper", paper, rows)]
    return {name: dict(row) for name, row in of_paper.items() if name != "sizes"}


def _check_reading(reading: Mapping[str, Any], switches: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a switch that the paper does not have, or a value that it does not know."""
    chosen = mapping("reading", reading)
    if chosen and not switches:
        raise InputError(f"nothing here depends on a reading: it must be empty; got {chosen!r}")
    for name, value in chosen.items():
        known = switches[one_of("a switch of the reading", name, switches)]
        if name in OPEN_SWITCHES and names_user_code(value):
            load_user_code(name, value)
        elif isinstance(value, str) and all(isinstance(one, str) for one in known):
            one_of(f"reading: {name}", value, known)


def start(
    paper: str,
    out: str = "",
    scale: str = "quick",
    seed: int = 0,
    runs: int = 0,
    jobs: int = 0,
    reading: Mapping[str, Any] | None = None,
) -> SimpleNamespace:
    """Open the results of a paper, set the look of all pictures, and say how much is computed.

    Parameters
    ----------
    paper : str
        Key of the paper in data/figures.toml, such as "mcdf".
    out : str
        Folder of the results; empty: results/<paper> of the project or of the current folder.
    scale : {"quick", "full"}
        How much is computed: a row of data/scales.toml.
    seed : int
        Root of all randomness of every sweep.
    runs : int
        Replicates of every sweep; 0: what the scale says.
    jobs : int
        Worker processes of every sweep; 0: all cores.
    reading : mapping of str to str, optional
        Switches of the paper that differ from the default, such as {"link": "shared"}; the law of
        the sizes also as {"size": "FILE.py:name"}.

    Returns
    -------
    SimpleNamespace
        The sizes of the scale by name, such as ``size.horizon``, and ``size.runs``;
        ``size.table`` shows them beside what the paper states.

    Raises
    ------
    InputError
        For an unknown paper, scale or switch, or a folder that is not dlsim's to write into.
    """
    import matplotlib.pyplot as plt

    from dlsim.study import plots

    scales = read_scales(paper)
    size = SimpleNamespace(**scales[one_of("scale", scale, scales)])
    rule = "a whole number of at least 0"
    size.runs = whole("runs", runs, 0, math.inf, f"{rule} (0 = what the scale says)") or size.runs
    seed = whole("seed", seed, 0, math.inf, rule)
    jobs = whole("jobs", jobs, 0, math.inf, f"{rule} (0 = all cores)")
    module = paper_module(paper)  # its import registers the measures of the paper's claims
    _check_reading(reading or {}, getattr(module, "SWITCHES", {}))
    results = Results(out, paper)
    for drawing in sorted((shared_folder("data") / "figures").glob(f"{paper}-*.svg")):
        results.picture(drawing.stem, read_bytes(drawing), "svg")  # redrawn once, shown by all
    _OPEN[:] = [
        Session(
            paper=paper,
            results=results,
            scale=scale,
            seed=seed,
            replicates=size.runs,
            jobs=jobs,
            reading=dict(reading or {}),
        )
    ]
    plots.use_style()
    plt.rcParams["figure.constrained_layout.use"] = False  # seaborn lays its grids out itself
    _note_earlier_figures()
    _watch_cells()
    size.table = show_sizes(paper)
    return size


def _note_earlier_figures(*_: Any) -> None:
    """Note, before a cell runs, the open figures: `save` uses them only if they are passed."""
    import matplotlib.pyplot as plt

    current().earlier_figures = frozenset(plt.get_fignums())


def _watch_cells() -> None:
    """Note the open figures before every cell of the notebook, if this runs in a notebook."""
    shell = running_shell()
    if shell is not None and _note_earlier_figures not in shell.events.callbacks["pre_run_cell"]:
        shell.events.register("pre_run_cell", _note_earlier_figures)


def has_rows(table: pd.DataFrame, what: str, needs: str = "") -> bool:
    """Tell whether there is something to draw; if not, print that the figure is left out.

    Parameters
    ----------
    table : DataFrame
        The rows of a sweep that a figure shows.
    what : str
        What is left out without them, such as "Figure 4".
    needs : str
        Which values of a parameter would make such rows, such as "the set-up cost 0 in setups".
    """
    if len(table):
        return True
    why = f"it needs {needs}" if needs else "these parameters make no rows for it"
    print(f"{what} is left out: {why}.")
    return False


def note_missing(rows: pd.DataFrame, policies: Iterable[str]) -> None:
    """Print which policies are not in the rows of a sweep, because they were added after it.

    Parameters
    ----------
    rows : DataFrame
        The rows of a sweep that a figure shows, with a column ``policy``.
    policies : iterable of str
        Labels of all policies that the figure should show.
    """
    ran = set(rows["policy"])
    if missing := [name for name in policies if name not in ran]:
        them = "it" if len(missing) == 1 else "them"
        remedy = f"the sweep did not run {them}; run its cell again"
        print(f"Not in this figure: {', '.join(missing)} ({remedy}).")


# ------------------------------------------------------------------ sizes at each scale

SCALES = ("quick", "full")


def _sizes_of(papers: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the sizes of some papers: at each scale, and as stated (None if not stated)."""
    rows = read_toml(shared_file("data/scales.toml"))
    for paper in papers:
        of_paper = rows[one_of("the paper", paper, rows)]
        for size in of_paper.get("sizes", ()):
            yield {
                "paper": paper,
                "stated": size.get("stated"),
                "where": size.get("where", ""),
                "quote": size.get("quote", ""),
                "what": size["what"],
                **{scale: _product(of_paper[scale], size["parameters"]) for scale in SCALES},
            }


def _product(scale: Mapping[str, Any], names: list[str]) -> float:
    """Return the product of parameters; a list counts by its length."""
    values = (scale[name] for name in names)
    return math.prod(len(one) if isinstance(one, list) else one for one in values)


def _as_text(size: float, stated: float | None) -> str:
    """Write a size, and how much of the stated one it is, unless they are equal."""
    if stated is None or size == stated:
        return f"{size:,.0f}"
    times = f"{100 * size / stated:.2g} %" if size < stated else f"{size / stated:g} times"
    return f"{size:,.0f} ({times})"


def table_of_sizes(*papers: str) -> pd.DataFrame:
    """Return how much is computed at each scale, beside what each paper states.

    Parameters
    ----------
    *papers : str
        Keys of data/scales.toml, such as "mcdf".

    Returns
    -------
    DataFrame
        One row per size, all texts: paper, what, "the paper states" (with the section), and one
        column per scale, which says how much of the stated size it is where it is another.
    """
    rows = []
    for size in _sizes_of(list(papers)):
        stated = "nothing" if size["stated"] is None else f"{size['stated']:,} ({size['where']})"
        row = {"paper": size["paper"], "what": size["what"], "the paper states": stated}
        rows.append(row | {one: _as_text(size[one], size["stated"]) for one in SCALES})
    return pd.DataFrame(rows, columns=["paper", "what", "the paper states", *SCALES])


def has_stated_size(paper: str, scale: str) -> bool:
    """Return whether a scale has every size that the paper states, and the paper states one."""
    known = [one for one in _sizes_of([paper]) if one["stated"] is not None]
    return bool(known) and all(one[scale] == one["stated"] for one in known)


def show_sizes(*papers: str) -> "Styler":
    """Show how much is computed at each scale, beside what each paper states.

    Parameters
    ----------
    *papers : str
        Keys of data/scales.toml, such as "mcdf".
    """
    table = table_of_sizes(*papers)
    own = {paper: [one for one in SCALES if has_stated_size(paper, one)] for paper in papers}
    if len(papers) == 1:
        table = table.drop(columns="paper")
    said = [
        f"The scale {scale} is the paper's own size" + f" ({paper})" * (len(papers) > 1)
        for paper, scales in own.items()
        for scale in scales
    ]
    caption = ". ".join(said) or "Neither scale is a size that the paper states"
    return shown_table(table).hide(axis="index").set_caption(f"{caption}.")
