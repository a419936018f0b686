"""Study machinery that knows no paper: sweeps, statistics, claims, notebooks, report."""
