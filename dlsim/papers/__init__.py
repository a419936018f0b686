"""One module per reproduced paper: its experiments, figures, tables and claims."""
