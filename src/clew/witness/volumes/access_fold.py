"""Turn the accesses on the volumes of a node into events, without IO.

The fold keeps which version each file has now. A container that reads what it wrote itself depends
on nothing, so nothing is recorded: else every program that checks its output would be its own
ancestor. Repeated reads of one state are one use.
"""

from collections.abc import Collection, Iterator

import msgspec

from clew.documents.ids import Uid
from clew.prov.events import AnyEvent, Generated, Invalidated, Used, Version
from clew.witness.volumes.accesses import (
    Access,
    ContentAnswer,
    ContentRequest,
    FileAccess,
    FileRemoval,
    FileRename,
    FileState,
)
from clew.witness.volumes.file_tables import FileTables
from clew.witness.volumes.file_versions import (
    CurrentFile,
    VersionCounter,
    content_event,
    known_content,
    pod_of,
)
from clew.witness.volumes.gaps import too_many_paths, unknown_base, unknown_names
from clew.witness.volumes.hard_links import FileNames, has_links
from clew.witness.volumes.pending_contents import PendingContents
from clew.witness.volumes.volumes import Volume


class AccessFold:
    """The files of all watched volumes of a node."""

    def __init__(self, *, keep: bool = True) -> None:
        """`keep`: see `FileTables`."""
        self.counter = VersionCounter()
        self._tables = FileTables(keep=keep)
        self._volumes, self._since = self._tables.volumes, self._tables.since
        self._files = self._tables.files
        self._names: dict[str, FileNames] = {}
        self._generation = 0
        self._contents = PendingContents()
        self._told: set[tuple[str, Uid, str]] = set()
        """What was reported of a container on a volume."""

    def watch(self, volume: Volume, at: int) -> None:
        """Follow the files of a volume from now on."""
        self._tables.watch(volume, at)
        if volume.key not in self._names:
            self._names[volume.key] = FileNames(self._files[volume.key])

    def expose(self, keys: Collection[str] | None) -> None:
        """Note that an unwatched process may have written to these volumes; None: to any volume."""
        self._tables.expose(keys)

    def unwatch(self, key: str) -> None:
        """No container that is watched has the volume any more."""
        self._tables.unwatch(key)
        self._names.pop(key, None)
        self._told = {one for one in self._told if one[2] != key}

    def take_requests(self) -> list[ContentRequest]:
        """The contents that are wanted since the last call."""
        return self._contents.take_requests()

    def apply(self, access: Access) -> list[AnyEvent]:
        """The events of one access; none if its volume is not watched. The spool numbers them."""
        if access.volume not in self._volumes:
            return []
        if isinstance(access, FileAccess):
            return list(self._access(access))
        return list(
            self._remove(access) if isinstance(access, FileRemoval) else self._rename(access)
        )

    def answer(self, request: ContentRequest, answer: ContentAnswer) -> list[AnyEvent]:
        """The events of a content that was read."""
        return list(self._content(request, answer))

    def give_up(self, request: ContentRequest) -> None:
        """The content could not be read: the file changed again or is gone."""
        self._contents.give_up(request)

    # -- accesses

    def _access(self, access: FileAccess) -> Iterator[AnyEvent]:
        if not self._has_room(access, access.path):
            yield from self._leave_out(access, access.path)
            return
        if access.written and not access.modified:
            access = msgspec.structs.replace(access, written=self._has_changed(access))
        if access.state is not None and access.state.links != 1:
            yield from self._take_other_name(access)
        file = self._current(access)
        reads = access.read and not (access.written and self._is_new(file, access))
        if reads and file.maker != access.container and access.container not in file.readers:
            yield from self._read(file, access, how="open")
        if access.written:
            yield from self._write(file, access)
        self._files[access.volume][access.path].handle = access.handle
        self._names[access.volume].note(access)

    def _take_other_name(self, access: FileAccess) -> Iterator[AnyEvent]:
        """A hard link: who made the file under its other name made it under this one."""
        found = self._names[access.volume].find_other(access)
        known = self._files[access.volume].get(access.path)
        if found is None:
            alone = access.read and (known is None or not known.versions())
            if alone and has_links(access) and self._is_first("names", access):
                yield from unknown_names(access, self._volumes[access.volume])
            return
        name, other = found
        if other.maker is None:
            if access.read and access.container not in other.readers:
                as_other = msgspec.structs.replace(access, path=name)
                yield from self._read(other, as_other, how="link")
            return
        new = self._files[access.volume][access.path] = self._copy(other, other.state)
        yield self._make(new, access.volume, access.path, other.maker, access.at - 1, how="link")
        yield from self._know_content(new, access)

    def _has_room(self, access: Access, *paths: bytes) -> bool:
        if access.container is None:
            return True
        pod, volume = pod_of(access.container), self._volumes[access.volume]
        return all(self.counter.has_room(pod, volume.locate(path)) for path in paths)

    def _leave_out(self, access: Access, *paths: bytes) -> Iterator[AnyEvent]:
        """The Pod has too many paths. Nothing is known of these files from now on."""
        assert access.container is not None
        for path in paths:
            self._files[access.volume].pop(path, None)
        self._since[access.volume] = max(self._since[access.volume], access.at)
        if self._is_first("paths", access):
            whole = self._volumes[access.volume].whole
            yield from too_many_paths(access.container, access.at, whole)

    def _is_first(self, what: str, access: Access) -> bool:
        """Whether something is to be reported: once for each container and volume."""
        assert access.container is not None
        before = len(self._told)
        self._told.add((what, access.container, access.volume))
        return len(self._told) > before

    def _has_changed(self, access: FileAccess) -> bool:
        """Whether a file that was open for writing is another one now."""
        if access.state is None:
            return False
        file = self._files[access.volume].get(access.path)
        if file is None or file.state is None:
            return access.state.mtime > self._since[access.volume]
        if file.open and file.maker == access.container:
            return True
        return not file.is_as(access.state)

    def _current(self, access: FileAccess) -> CurrentFile:
        """What is known of the file. If it is not as it was, and no watched container wrote it,
        then something unknown did, and it is another file for everyone.

        Programs that unpack archives set the time of a file after they wrote it. So the time alone
        does not take a file from its maker; for other Pods the digest decides."""
        files = self._files[access.volume]
        file = files.get(access.path)
        if file and not file.open and not access.written and access.state is not None:
            before = file.state
            if before is not None and (
                before.size != access.state.size
                or (before.mtime != access.state.mtime and file.maker != access.container)
            ):
                file = None
            else:
                file.state = access.state
        if file is None:
            file = files[access.path] = self._new_file(access.state)
        return file

    def _new_file(self, state: FileState | None) -> CurrentFile:
        self._generation += 1
        return CurrentFile(self._generation, state=state)

    def _is_new(self, file: CurrentFile, access: FileAccess) -> bool:
        """Whether a file that was read and written by one merged access cannot have existed
        before: then the write came first."""
        born = access.state.born if access.state else 0
        return not file.versions() and born > self._since[access.volume]

    def _read(self, file: CurrentFile, access: FileAccess, *, how: str) -> Iterator[AnyEvent]:
        file.readers.add(access.container)
        known = pod_of(access.container) in file.found
        version = self._found(file, access.volume, access.path, access.container)
        yield Used(
            execution=pod_of(access.container),
            n=0,
            at=access.at,
            activity=access.container,
            version=version,
            how=how,
        )
        if file.digest is not None and not known:
            yield known_content(file, version, access.at)
        elif not file.requested and not file.open:
            self._contents.ask(file, access, version)

    def _write(self, file: CurrentFile, access: FileAccess) -> Iterator[AnyEvent]:
        pod = pod_of(access.container)
        base: CurrentFile | None = None
        if not (file.open and file.maker == access.container):
            base, file = file, self._new_file(access.state)
            self._files[access.volume][access.path] = file
            locator = self._volumes[access.volume].locate(access.path)
            file.maker = access.container
            file.made = Version(locator, access.container, self.counter.next(pod, locator))
        elif not access.closed:
            return  # it is reported that this one writes
        assert file.made is not None
        file.open, file.state = not access.closed, access.state
        yield Generated(
            execution=pod,
            n=0,
            at=access.at,
            activity=access.container,
            version=file.made,
            finished=access.closed,
        )
        if base is not None and not access.read and base.maker != access.container:
            yield from self._base(file, base, access)
        if access.closed:
            self._contents.ask(file, access, file.made)

    def _base(self, file: CurrentFile, base: CurrentFile, access: FileAccess) -> Iterator[AnyEvent]:
        """Whether what was there is in the new version."""
        if access.kept:
            base.requested = True  # its bytes are gone
            yield from self._read(base, access, how="append")
        elif access.kept is None and base.digest is not None:
            file.base, base.base = base, None
        elif access.kept is None and self._existed(base, access) and self._is_first("base", access):
            yield unknown_base(access, self._volumes[access.volume].locate(access.path))

    def _existed(self, base: CurrentFile, access: FileAccess) -> bool:
        born = access.state.born if access.state else 0
        return bool(base.versions()) or 0 < born <= self._since[access.volume]

    # -- names

    def _remove(self, access: FileRemoval) -> Iterator[AnyEvent]:
        if not self._has_room(access, access.path):
            yield from self._leave_out(access, access.path)
            return
        file = self._files[access.volume].pop(access.path, None)
        if access.container is not None:
            file = file or self._new_file(None)
            yield self._invalidated(file, access.volume, access.path, access, how="delete")

    def _rename(self, access: FileRename) -> Iterator[AnyEvent]:
        if not access.directory:
            yield from self._rename_file(access, access.path, access.target, access.state)
            return
        files = self._files[access.volume]
        prefix = access.path + b"/"
        known = [path for path in files if path.startswith(prefix)]
        present = [prefix + child for child in access.children]
        for path in dict.fromkeys([*known, *present]):
            target = access.target + path[len(access.path) :]
            if path not in files and target in files:
                continue  # accessed under its new name since
            yield from self._rename_file(access, path, target, None)

    def _rename_file(
        self, access: FileRename, path: bytes, target: bytes, state: FileState | None
    ) -> Iterator[AnyEvent]:
        if not self._has_room(access, path, target):
            yield from self._leave_out(access, path, target)
            return
        files = self._files[access.volume]
        old = files.pop(path, None)
        replaced = files.pop(target, None)
        old = old or self._new_file(state)
        new = files[target] = self._copy(old, state or old.state)
        if access.container is None:
            return
        pod = pod_of(access.container)
        if replaced is not None:
            yield self._invalidated(replaced, access.volume, target, access, how="replace")
        version = self._version_for(old, access.volume, path, access.container)
        yield Used(
            execution=pod,
            n=0,
            at=access.at,
            activity=access.container,
            version=version,
            how="rename",
        )
        yield self._make(new, access.volume, target, access.container, access.at, how="rename")
        yield self._invalidated(old, access.volume, path, access, how="rename")
        yield from self._know_content(new, access)

    def _copy(self, file: CurrentFile, state: FileState | None) -> CurrentFile:
        """The same content under another name, of which no version is known."""
        new = CurrentFile(file.generation, file.handle, state=state)
        new.digest, new.size, new.stored = file.digest, file.size, file.stored
        return new

    def _make(
        self, file: CurrentFile, volume: str, path: bytes, maker: Uid, at: int, *, how: str
    ) -> Generated:
        """The event that `maker` generated a version from existing content (a rename or a hard
        link)."""
        pod, locator = pod_of(maker), self._volumes[volume].locate(path)
        file.maker = maker
        file.made = Version(locator, maker, self.counter.next(pod, locator))
        return Generated(
            execution=pod,
            n=0,
            at=at,
            activity=maker,
            version=file.made,
            how=how,
            finished=True,
        )

    def _know_content(
        self, file: CurrentFile, access: FileAccess | FileRename
    ) -> Iterator[AnyEvent]:
        """The content of a version that was just made of what was there."""
        assert file.made is not None
        if file.digest is not None:
            yield known_content(file, file.made, access.at)
        elif not self._contents.join(file):
            self._contents.ask(file, access, file.made)

    def _invalidated(
        self,
        file: CurrentFile,
        volume: str,
        path: bytes,
        access: FileRemoval | FileRename,
        *,
        how: str,
    ) -> Invalidated:
        assert access.container is not None
        return Invalidated(
            execution=pod_of(access.container),
            n=0,
            at=access.at,
            activity=access.container,
            version=self._version_for(file, volume, path, access.container),
            how=how,
        )

    # -- versions and contents

    def _version_for(self, file: CurrentFile, volume: str, path: bytes, container: Uid) -> Version:
        """The version as the Pod of this container names it."""
        if file.made is not None and file.maker == container:
            return file.made
        return self._found(file, volume, path, container)

    def _found(self, file: CurrentFile, volume: str, path: bytes, container: Uid) -> Version:
        pod = pod_of(container)
        if pod not in file.found:
            locator = self._volumes[volume].locate(path)
            file.found[pod] = Version(locator, pod, self.counter.next(pod, locator))
        return file.found[pod]

    def _content(self, request: ContentRequest, answer: ContentAnswer) -> Iterator[AnyEvent]:
        waiting = self._contents.take(request, answer)
        versions = [request.version, *(one for file in waiting for one in file.versions())]
        for version in dict.fromkeys(versions):
            yield content_event(answer, version, request.at)
        if answer.kept_base:
            yield from self._continuation(request, waiting)
        for file in waiting:
            file.base = None

    def _continuation(
        self, request: ContentRequest, waiting: list[CurrentFile]
    ) -> Iterator[AnyEvent]:
        """The file begins with what it held before: its maker only added to it."""
        maker = request.version.maker
        for file in waiting:
            if file.base is not None and file.made == request.version:
                yield Used(
                    execution=pod_of(maker),
                    n=0,
                    at=request.at,
                    activity=maker,
                    version=self._found(file.base, request.volume, request.path, maker),
                    how="append",
                )
