"""Paper B's drawings: the simulator, a network; its tables."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.bricks import Environment, Outcome, simulate
from dlsim.files import read_toml, shared_file
from dlsim.papers.bricks import cells
from dlsim.papers.bricks.cells import Kind
from dlsim.papers.bricks.study import Study, printed_table
from dlsim.study.claims import SYMBOLS
from dlsim.study.plot import PERCENT, arrow, axes_of, boxed
from dlsim.study.style import INK

_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center"}


def traffic(o: Outcome) -> dict[str, int]:
    """Count what passed between the parts of Figure 1 in a run."""
    end = float(o.requests["completion"].max())
    return {
        "requests": len(o.requests), "submissions": len(o.attempts),
        "fallbacks": int(o.requests["fallbacks"].sum()),
        "probes": int(end // o.reading.probe) + 1,
        "background": int((o.environment.background.times <= end).sum()),
        "links": len(o.environment.rates), "servers": len(o.environment.servers),
    }  # fmt: skip


def fig1(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1: the parts of the simulator, with what passed between them in one run."""
    ax, s = axes_of(ax, (9.0, 4.6)), cells.split_switches(study.switches)
    env, kind = Environment.random(**study.drawn_first), Kind(study.middle, 0, 1)
    n = traffic(simulate(env, cells.scheduler_of(kind, **s.scheduler), s.reading))
    for (low, high), name in (((-0.75, 0.75), "Grid computing environment"),
                              ((1.6, 3.05), "Scheduling unit")):  # fmt: skip
        ax.fill_between([-0.65, 4.5], low, high, color="#E4E4E4", zorder=0)
        ax.text(0.7, high - 0.03, name, va="top", fontsize=10, color="0.3")
    diagram = read_toml(shared_file("data/diagrams.toml"))["bricks"]
    boxes = {}
    for name, module, x, y in diagram["boxes"]:
        boxes[name] = boxed(ax, x, y, name, 0.5)
        ax.text(x, y + (0.34 if y > 0 else -0.47), f"bricks.{module}", ha="center", fontsize=8,
                color=INK["blue"], family="monospace")  # fmt: skip
    for one, other, text, at, dy, head in diagram["arrows"]:
        arrow(ax, boxes[one], boxes[other], head)
        (a, b), (c, d) = (boxes[end].get_position() for end in (one, other))
        ax.text(a + at * (c - a), b + at * (d - b) + dy, text.format(**n), fontsize=9,
                color="0.25", bbox=None if dy else _PLATE, **_MIDDLE)  # fmt: skip
    ax.text(3.8, -0.68, f"{n['background']:,} jobs of other users", ha="center", fontsize=9)
    ax.text(1.9, -0.68, "throughput by trace", ha="center", fontsize=9)
    ax.set(xlim=(-0.7, 4.55), ylim=(-0.85, 3.15))
    ax.set_title(f"One run of {study.size.hours:g} h, {kind.policy} {cells.version(0, 1)}")
    ax.axis("off")
    return study.keep("fig1", ax, pd.DataFrame([n]))


def fig2(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 2: the network of one drawn environment, from core to nodes."""
    ax, env = axes_of(ax, (7.2, 6.2)), Environment.random(**study.drawn_first)
    domains = env.topology.domains
    angle = 2 * np.pi * np.arange(domains) / domains
    mean = env.rates.mean(axis=1).reshape(domains, 4)
    rows = []
    for d in range(domains):
        hub = np.array([np.cos(angle[d]), np.sin(angle[d])])
        wan = mean[d, 2:].mean()
        ax.plot([0, hub[0]], [0, hub[1]], color="0.55", lw=wan / 200, zorder=1)
        ax.text(0.55 * hub[0], 0.55 * hub[1], f"{wan:.0f}", fontsize=8.5, bbox=_PLATE, **_MIDDLE)
        speeds = env.servers.loc[env.servers["domain"] == d, "performance"]
        clients = int((env.clients["domain"] == d).sum())
        _domain(ax, hub, angle[d], speeds.to_numpy(), clients)
        ax.text(0.85 * hub[0], 0.85 * hub[1], f"{mean[d, :2].mean():.0f}", fontsize=8.5,
                color=INK["vermillion"], bbox=_PLATE, **_MIDDLE)  # fmt: skip
        rows.append([d, len(speeds), clients, *mean[d]])
    ax.plot(0, 0, "s", color="0.2", ms=13, zorder=3)
    ax.plot([], [], "o", color=INK["blue"], label="server (larger: faster)")
    ax.plot([], [], "o", mfc="white", mec=INK["black"], label="client")
    ax.plot([], [], "s", color="0.2", label="core, domain router")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=3)
    ax.set(xlim=(-1.75, 1.75), ylim=(-1.7, 1.6), aspect="equal")
    ax.set_title("WAN (black) and LAN (orange) throughput, Mbit/s, mean of both directions")
    ax.axis("off")
    columns = ["domain", "servers", "clients", "lan_up", "lan_down", "wan_up", "wan_down"]
    return study.keep("fig2", ax, pd.DataFrame(rows, columns=columns))


def _domain(ax: Axes, hub: Any, angle: float, speeds: Any, clients: int) -> None:
    count = len(speeds) + clients
    reach = min(0.1 * (count - 1), 0.75)
    turn = angle + np.linspace(-reach, reach, count) if count > 1 else np.array([angle])
    places = hub + 0.5 * np.c_[np.cos(turn), np.sin(turn)]
    ax.plot(*hub, "s", color="0.2", ms=7, zorder=3)
    nodes = [*([None] * clients), *speeds]
    order = np.argsort(np.r_[2 * np.arange(clients), 2 * np.arange(len(speeds)) + 1])
    for (x, y), k in zip(places, order, strict=True):
        ax.plot([hub[0], x], [hub[1], y], color=INK["vermillion"], lw=0.8, zorder=1)
        if nodes[k] is None:
            ax.plot(x, y, "o", mfc="white", mec=INK["black"], ms=5, zorder=3)
        else:
            ax.plot(x, y, "o", color=INK["blue"], ms=3 + nodes[k] / 70, zorder=3)


def _drawn(env: Environment, communication: bool) -> dict[str, Any]:
    """Return the drawn values of the parameters of Table 1, by argument."""
    r, servers = env.requests, env.servers
    nodes = pd.concat([servers["domain"], env.clients["domain"]]).value_counts()
    mean, kind = env.rates.mean(axis=1), env.topology.links["kind"].to_numpy()
    away = (r["send"] + r["recv"]) / 75 * communication + r["work"] / 300
    return {
        "domains": [env.topology.domains], "nodes": nodes, "lan": mean[kind == "lan"],
        "wan": mean[kind == "wan"], "performance": servers["performance"],
        "server_load": [env.server_load], "packet": [env.packet],
        "data_range": pd.concat([r["send"], r["recv"]]), "work_range": r["work"],
        "deadline_factor": (r["deadline"] - r["time"]) / away,
    }  # fmt: skip


def table1(study: Study) -> pd.DataFrame:
    """Table 1: the printed parameters, and what the first environment drew."""
    communication = bool(study.switches.get("deadline_communication", True))
    printed, drawn = printed_table(), _drawn(Environment.random(**study.drawn_first), communication)
    ends = [drawn.get(name, [np.nan]) for name in printed["argument"]]
    for name, of in (("drawn_low", np.min), ("drawn_high", np.max), ("drawn_mean", np.mean)):
        printed[name] = [of(values) for values in ends]
    study.table("table1", printed)
    shown = printed[["parameter", "unit", "law"]].fillna("")
    shown.insert(1, "printed", _spans(printed["low"], printed["high"]))
    mean = _spans(printed["drawn_mean"], printed["drawn_mean"])
    return shown.assign(drawn=_spans(printed["drawn_low"], printed["drawn_high"]), mean=mean)


def _spans(low: Any, high: Any) -> list[str]:
    texts = [f"{a:,.4g}" if a == b else f"{a:,.4g} to {b:,.4g}"
             for a, b in zip(low, high, strict=True)]  # fmt: skip
    return ["" if "nan" in text else text.replace("e+06", " million") for text in texts]


def table_readings(study: Study) -> pd.DataFrame:
    """Tabulate every claim's numbers under the readings of Load and in the packet network."""
    table = study.shown_readings
    loads = [f"load={load}" for load in cells.SWITCHES["load"][1:]]
    kept = list(dict.fromkeys([table["reading"].iloc[0], "default", *loads, "network=packet"]))
    table = table[table["reading"].isin(kept)]
    share = np.where(table["unit"].isin(["points", "%"]), PERCENT, 1.0)
    ends = [(table[name] * share).map("{:.3g}".format) for name in ("mean", "low", "high")]
    columns = (table[name] for name in ("verdict", "points", "point", "unit"))
    texts = [
        f"{SYMBOLS[word]} {word}" + f": {count}; {e} [{a}, {b}] {unit}" * bool(point)
        for word, count, point, unit, e, a, b in zip(*columns, *ends, strict=True)
    ]
    wide = table.assign(cell=texts).pivot(index="claim", columns="reading", values="cell")
    shown = wide.loc[table["claim"].unique(), [name for name in kept if name in wide]]
    return shown.rename_axis(columns=None).reset_index()
