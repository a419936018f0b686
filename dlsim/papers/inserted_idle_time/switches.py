"""What paper I leaves open: the switches of its readings."""

from dlsim.realtime import model, workload

#: Generators of `dlsim.realtime.workload` whose switches a reading may name.
GENERATORS = ("dcratio", "user_split")
#: Switches of the engine that matter here; batches, set-up costs, overtaking and no
#: admission do not occur.
ENGINE_SWITCHES = (
    "release", "commit", "link", "backfill", "split", "mn_count", "same_time", "scope", "ties",
    "count_single",
)  # fmt: skip

_DRAWN = {k: v for name in GENERATORS for k, v in workload.SWITCHES[name].items()}
#: Switches of the engine, then of the workload, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {
    **{name: model.SWITCHES[name] for name in ENGINE_SWITCHES},
    **_DRAWN,
}
