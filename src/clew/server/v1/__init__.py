"""Our own API: everything that is recorded, and how work goes."""
