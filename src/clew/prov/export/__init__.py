"""Exports of the record: W3C PROV (`w3c`), RO-Crate (`ro_crate`), events, notes and reports.

W3C PROV and RO-Crate are written without their libraries, which are made for small documents: an
execution may have a hundred thousand files. The tests read the results back with the libraries.
"""
