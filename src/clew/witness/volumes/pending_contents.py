"""The contents that the fold asked for, and the files that wait for them."""

from clew.prov.events import Version
from clew.witness.volumes.accesses import ContentAnswer, ContentRequest, FileAccess, FileRename
from clew.witness.volumes.file_versions import CurrentFile


class PendingContents:
    def __init__(self) -> None:
        self._requests: list[ContentRequest] = []
        self._waiting: dict[int, list[CurrentFile]] = {}
        """By generation: another name of a file adds one."""

    def take_requests(self) -> list[ContentRequest]:
        """Those since the last call."""
        requests, self._requests = self._requests, []
        return requests

    def ask(self, file: CurrentFile, access: FileAccess | FileRename, version: Version) -> None:
        if file.state is None:
            return  # it was gone already
        file.requested = True
        self._waiting.setdefault(file.generation, []).append(file)
        base = file.base
        self._requests.append(
            ContentRequest(
                at=access.at,
                container=access.container or version.maker,
                volume=access.volume,
                path=access.target if isinstance(access, FileRename) else access.path,
                handle=access.handle,
                state=file.state,
                version=version,
                generation=file.generation,
                base_size=base.size if base else 0,
                base_digest=base.digest if base else None,
            )
        )

    def join(self, file: CurrentFile) -> bool:
        """Let a file wait for a content that was asked for already; False if none was."""
        waiting = self._waiting.get(file.generation)
        if waiting is None:
            return False
        waiting.append(file)
        return True

    def take(self, request: ContentRequest, answer: ContentAnswer) -> list[CurrentFile]:
        """The files that waited for this content, which they have now."""
        waiting = self._waiting.pop(request.generation, [])
        for file in waiting:
            file.digest, file.size, file.stored = answer.digest, answer.size, answer.stored
        return waiting

    def give_up(self, request: ContentRequest) -> None:
        for file in self._waiting.pop(request.generation, []):
            file.requested = False
