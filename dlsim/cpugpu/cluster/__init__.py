"""Jobs on several nodes: moldable jobs (Ravi et al.) and MapReduce (paper C, section 4)."""
