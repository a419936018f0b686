"""A sweep on a Dask cluster gives the same bytes as one in this process (extra cluster)."""

import pytest

from dlsim.study import sweep
from tests import sweep_functions as functions

distributed = pytest.importorskip("distributed")


@pytest.mark.filterwarnings("ignore")  # what Dask itself warns of is not ours to mend
def test_a_dask_cluster_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path))
    grid = {"load": [0.1, 0.2, 0.3]}
    here = sweep(functions.echo, grid, replicates=4, jobs=1, cache=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = sweep(functions.echo, grid, replicates=4, executor=client.get_executor())
    assert there.to_csv() == here.to_csv()
