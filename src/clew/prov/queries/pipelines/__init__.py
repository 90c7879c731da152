"""Pipeline runs and their tasks, as the graph knows them."""
