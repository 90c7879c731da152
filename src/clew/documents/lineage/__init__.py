"""The documents of lineage: `lineage` has its nodes and edges, `lineage_graph` the boxes and arrows
that the web app draws. Any package may import it."""
