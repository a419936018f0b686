"""What takes long or needs other programs: peers, simulators, executed notebooks, kills, browsers.

``pytest tests/verification`` runs it, ``pytest`` alone does not. Every change must pass the files
that .ci/run names; the scheduled job of .github/workflows/verification.yml runs all with
DLSIM_TEST_SCALE=1. `mutation` changes the engines and asks whether the unit tests notice.
"""
