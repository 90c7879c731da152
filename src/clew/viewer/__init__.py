"""The files of a directory in a browser: list, download, upload, rename, delete.

`volume` is the directory and the only module that opens files; nothing outside is reachable,
whatever symbolic links or renames do. `directory_listing`, `download`, `upload` and
`file_operations` do the work; `app` is HTTP; `page.*` is what the browser shows. It does not know
users: the proxy before it must. Never contains anything about projects. Imported by
`clew viewer`; the server uses its `origin_check`.
"""
