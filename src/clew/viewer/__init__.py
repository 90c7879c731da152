"""A file browser for one directory: list, download, upload, rename, delete.

`volume` is the only module that opens files; nothing outside its directory is reachable, whatever
symbolic links or renames do. `app` is the HTTP interface. The page is `page.html`, whose script
`page.js` uses `dom`, `requests` and `uploads`. It has no users: the proxy in front of it must
authenticate them. Never contains anything about projects. Imported by `clew viewer`; the server
uses `origin_check` and `problems`.
"""
