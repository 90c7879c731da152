"""Remotes: content shared through a directory, a bucket or a server, in the store's own packs.

    object_storage  named objects in a directory
    s3_bucket       named objects in S3
    zip_file        named objects in a bundle
    remote_index    what a remote holds, from the tables of its packs
    upload          send what the remote lacks
    download        fetch and verify what is missing here
    pack_transfer   exchange packs with a client, and verify what it sends
    server_fetch    fetch from a server what is missing here

`docs/formats/remote.md` specifies the objects. Knows bytes and digests, never executions.
"""

from clew.store.remotes.remote_index import Remote, document_name, open_remote

__all__ = ["Remote", "document_name", "open_remote"]
