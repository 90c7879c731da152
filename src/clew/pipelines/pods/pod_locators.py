"""The places of the files that a task in a Pod used, as locators. Pure.

    file://DIGITS/PATH     a file of the image, by the digits of its digest: every container of the
                           image has the same one
    file://EXECUTION/PATH  a file of this container alone: the task changed it, or it is on a volume
    s3://BUCKET/KEY        an artifact that the task was given or made

So the same path in two images is two files, neither of them one of this machine.
"""

from collections.abc import Iterable, Iterator

from clew.documents.ids import Locator, Uid
from clew.kube.tasks.task_pod import SHARED
from clew.pipelines.pods import task_documents
from clew.prov.locators import escape_path, file_locator
from clew.witness.syscalls.data_flows import WRITES
from clew.witness.syscalls.observations import normalize_path
from clew.witness.syscalls.trace_format import AnyRecord, Change, Descriptor, Open

_NODE_FILES = (b"/etc/hosts", b"/etc/hostname", b"/etc/resolv.conf")
"""The kubelet writes them for each Pod."""
_NODE_DIRECTORIES = (b"/dev", b"/var/run/secrets", b"/run/secrets")


def is_in_every_pod(path: bytes) -> bool:
    """Whether Clew or the kubelet put this file there: it is the same for equal tasks, or of no
    concern to them."""
    own = {*_NODE_FILES, *_NODE_DIRECTORIES, *map(str.encode, SHARED)}
    return not own.isdisjoint((path, *_list_directories(path)))


class PodLocators:
    """Finds the locator of a path in the container of one task."""

    def __init__(
        self,
        execution: Uid,
        image_digest: str | None,
        *,
        inputs: Iterable[str],
        outputs: Iterable[str],
        mounts: Iterable[str],
        records: Iterable[AnyRecord],
    ) -> None:
        """`inputs`, `outputs`: the URLs of artifacts; `mounts`: the paths of its volumes;
        `records`: the trace, which shows what it changed."""
        self._execution = execution
        digest = (image_digest or "").partition(":")[2]
        self._image = digest or execution  # without a digest nobody knows who has the same file
        self._inputs, self._outputs = _by_path(inputs), _by_path(outputs)
        self._changed = _find_changed(records)
        own = [*map(str.encode, (*SHARED, *mounts)), *_NODE_FILES, *_NODE_DIRECTORIES]
        self._own = {path.rstrip(b"/") for path in own}

    def __call__(self, path: bytes) -> Locator:
        places = [path, *_list_directories(path)]
        changed = not self._changed.isdisjoint(places)
        for artifacts in (self._outputs, {} if changed else self._inputs):
            for place in places:
                if place in artifacts:
                    return Locator(artifacts[place] + escape_path(path[len(place) :]))
        own = changed or not self._own.isdisjoint(places)
        return file_locator(self._execution if own else self._image, path)


def _by_path(urls: Iterable[str]) -> dict[bytes, str]:
    return {task_documents.data_path(url).encode(): url for url in urls}


def _list_directories(path: bytes) -> Iterator[bytes]:
    """All directories above a path, but for the root."""
    while (end := path.rfind(b"/")) > 0:
        path = path[:end]
        yield path


def _find_changed(records: Iterable[AnyRecord]) -> set[bytes]:
    """The paths at which the task changed something; of a directory, all below it."""
    changed: set[bytes] = set()
    for record in records:
        if isinstance(record, Open) and record.image:
            changed.add(record.real or normalize_path(record.path))
        elif isinstance(record, Descriptor) and record.way & WRITES:
            changed.add(record.name)
        elif isinstance(record, Change):
            changed.update(path for path in (record.path, record.path2) if path)
    return changed
