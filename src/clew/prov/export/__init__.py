"""The record in other people's words: W3C PROV (`w3c`), and RO-Crate (`crates`).

Both are written by hand: the libraries of these formats are made for small documents, and an
execution may have a hundred thousand files. The tests read the results back with them.
"""
