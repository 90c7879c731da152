"""Exports of an execution that can run elsewhere: OCI images and Dockerfiles.

Exports of the record alone (W3C PROV, RO-Crate) are in `prov.export`. Imported by `api`.
"""
