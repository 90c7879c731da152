"""Remotes: content that is shared through a folder or a bucket, in the store's own packs.

    places      where a remote lies: whole objects by name, in a folder
    buckets     the same in S3
    catalogue   what a remote holds, learnt from the tables of its packs
    sending     what is missing there, packed and sent
    receiving   what is missing here, fetched and verified
    taking      what a sender brings to the door of a server, verified
    giving      what somebody lacks, packed as it is asked for
    bringing    what is missing here, asked of a server and taken

`docs/formats/remote.md` describes the objects. Like the rest of the store this knows bytes and
digests: what an execution is stays with whoever writes its document.
"""

from __future__ import annotations

from clew.store.remotes.remote_index import Remote, document_name, open_remote

__all__ = ["Remote", "document_name", "open_remote"]
