"""Results that must not change: figures at quick scale, and the decisions of random runs."""
