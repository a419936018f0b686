"""One module per reproduced paper: its constants, and the measures of its claims."""
