"""Names of `dlsim.compiled` and `dlsim.cache` as they were before."""
