"""The files of a directory in a browser: list, download, upload, rename, delete.

`volume` is the only module that opens files; nothing outside its directory is reachable, whatever
symbolic links or renames do. `app` is the HTTP interface, `page.*` the page. It has no users: the
proxy in front of it must authenticate them. Never contains anything about projects. Imported by
`clew viewer`; the server uses `origin_check` and `problems`.
"""
