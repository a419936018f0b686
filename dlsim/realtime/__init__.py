"""Real-time divisible loads on one cluster (papers M and I)."""
