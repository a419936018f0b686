"""Inside a GPU: chunks through its engines, and the split of a work over devices."""
