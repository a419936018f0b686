"""Policies of a user that stand beside those of paper M or I in its figures."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dlsim.errors import InputError
from dlsim.realtime import Policy
from dlsim.realtime.model import find_policy


def load_user_policies(
    policies: Sequence[Any] | Mapping[str, Any],
    compared: Collection[str],
    admission_only: bool = False,
) -> dict[str, Policy]:
    """Return a user's policies by their labels.

    Parameters
    ----------
    policies : sequence or mapping
        Names of policies of `dlsim.realtime`, policies, or texts "FILE.py:name", each of the
        texts also with a label before it, as in "mine=FILE.py:name"; or policies by label.
    compared : collection of str
        Labels of the policies that the notebook compares anyway.
    admission_only : bool
        Whether a policy without admission control is refused: paper I counts refused tasks.

    Raises
    ------
    InputError
        For a label that cannot stand in a picture, a policy that has the label of a compared one,
        and as `admission_only` says.

    Examples
    --------
    >>> list(load_user_policies(["mine=EDF-DLT", "FIFO-DLT"], compared=["MCDF"]))
    ['mine', 'FIFO-DLT']
    """
    if isinstance(policies, str) or not isinstance(policies, Mapping | Sequence):
        raise InputError(f"policies must be a list or a mapping of labels, got {policies!r}")
    rows = policies.items() if isinstance(policies, Mapping) else ((None, one) for one in policies)
    found: dict[str, Policy] = {}
    for label, one in rows:
        if label is None and isinstance(one, str) and "=" in one:
            label, _, one = one.partition("=")
        name, policy = find_policy(one)
        label = label or name
        if not isinstance(label, str) or label in found:
            raise InputError(f"policy {label!r} must have a label of its own; name it LABEL=policy")
        if "$" in label or not label.isprintable():
            rule = "stands in pictures, in which a $ begins a formula"
            raise InputError(f"the label {label!r} {rule}: give it one of letters, mine=...")
        if label in compared:
            raise InputError(f"{label} is compared already: give yours a label, mine=...")
        if admission_only and not policy.admission:
            rule = "refuses no task, and this paper counts refused tasks"
            raise InputError(f"policy {label} {rule}; use one with admission control")
        found[label] = policy
    return found
