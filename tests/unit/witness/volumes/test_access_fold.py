"""Accesses of containers become versions, uses and writings, without cycles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.witness.volumes.accesses import (
    CLAIM,
    FOREIGN,
    LOCAL,
    MAIN,
    OTHER,
    POD,
    RAW,
    SECOND,
    STATE,
    answer,
    brief,
    fold_of,
    read,
    run,
    write,
)

from clew.documents.ids import Digest, Uid
from clew.prov.cluster.watch_declarations import UNWATCHED
from clew.prov.events import Content, Gap, Generated, Invalidated, Looked, Used, Version
from clew.witness.volumes import file_tables, file_versions
from clew.witness.volumes.access_fold import AccessFold
from clew.witness.volumes.accesses import (
    Access,
    ContentAnswer,
    FileRemoval,
    FileRename,
    FileState,
)
from clew.witness.volumes.volumes import Volume, empty_dir_volume


def test_a_read_uses_a_version_that_the_pod_found_and_repeated_reads_are_one_use() -> None:
    fold = fold_of()
    events = run(fold, read(MAIN), read(MAIN), read(SECOND))
    found = Version(RAW, POD, 1)
    assert brief(events) == [("Used", "open", found), ("Used", "open", found)]
    assert [event.activity for event in events] == [MAIN, SECOND]


def test_a_container_that_reads_what_it_wrote_depends_on_nothing() -> None:
    events = run(fold_of(), write(MAIN), read(MAIN), read(MAIN, state=None))
    assert brief(events) == [("Generated", "write", Version(RAW, MAIN, 1))]


def test_the_time_of_an_unpacked_file_does_not_take_it_from_its_maker() -> None:
    later = FileState(size=3, mtime=1, ctime=11, mode=0o100644)
    assert len(run(fold_of(), write(MAIN), read(MAIN, state=later))) == 1


def test_each_pod_names_its_own_version_of_one_state() -> None:
    events = run(fold_of(), write(MAIN), read(FOREIGN), read(SECOND))
    assert brief(events)[1:] == [
        ("Used", "open", Version(RAW, OTHER, 1)),
        ("Used", "open", Version(RAW, POD, 2)),
    ]


def test_a_state_that_no_watched_container_wrote_is_another_version() -> None:
    changed = FileState(size=4, mtime=20, ctime=20, mode=0o100644)
    events = run(fold_of(), read(MAIN), read(MAIN, state=changed))
    assert [version.ordinal for _, _, version in brief(events)] == [1, 2]


def test_a_file_that_is_open_for_long_is_one_version() -> None:
    fold = fold_of()
    events = run(fold, *(write(MAIN, closed=False, at=at) for at in (1, 2)), write(MAIN, at=3))
    assert [(e.version, e.finished) for e in events if isinstance(e, Generated)] == [
        (Version(RAW, MAIN, 1), False),
        (Version(RAW, MAIN, 1), True),
    ]


def test_a_merged_write_and_read_of_a_new_file_is_no_use_and_of_an_old_one_is() -> None:
    assert brief(run(fold_of(), write(MAIN, read=True))) == [
        ("Generated", "write", Version(RAW, MAIN, 1))
    ]
    old = FileState(size=3, mtime=10, ctime=10, mode=0o100644, born=1)
    assert [kind for kind, *_ in brief(run(fold_of(), write(MAIN, read=True, state=old)))] == [
        "Used",
        "Generated",
    ]


def test_opening_for_writing_alone_is_no_write() -> None:
    fold = fold_of()
    run(fold, read(MAIN))
    assert run(fold, write(SECOND, modified=False)) == []
    changed = FileState(size=3, mtime=99, ctime=99, mode=0o100644)
    assert len(brief(run(fold, write(SECOND, modified=False, state=changed)))) == 1


def test_a_rename_carries_content_and_replaces_what_was_there() -> None:
    fold = fold_of()
    run(fold, read(FOREIGN, b"/final"), write(MAIN, b"/tmp"))
    fold.answer(
        fold.take_requests()[-1],
        answer_to_tmp := ContentAnswer(
            digest=Digest("blake3:" + "7" * 64), size=3, mode=0o100644, mtime=10
        ),
    )
    events = run(
        fold,
        FileRename(
            at=200, container=MAIN, volume=CLAIM.key, path=b"/tmp", target=b"/final", state=STATE
        ),
    )
    tmp, final = CLAIM.locate(b"/tmp"), CLAIM.locate(b"/final")
    assert brief(events) == [
        ("Invalidated", "replace", Version(final, POD, 1)),
        ("Used", "rename", Version(tmp, MAIN, 1)),
        ("Generated", "rename", Version(final, MAIN, 2)),
        ("Invalidated", "rename", Version(tmp, MAIN, 1)),
    ]
    (content,) = [event for event in events if isinstance(event, Content)]
    assert (content.version, content.digest) == (Version(final, MAIN, 2), answer_to_tmp.digest)
    assert run(fold, read(MAIN, b"/final")) == []


def test_content_that_arrives_after_a_rename_counts_for_both_names() -> None:
    fold = fold_of()
    run(fold, write(MAIN, b"/tmp"))
    (request,) = fold.take_requests()
    run(
        fold,
        FileRename(
            at=2, container=MAIN, volume=CLAIM.key, path=b"/tmp", target=b"/new", state=STATE
        ),
    )
    assert fold.take_requests() == []
    contents = [
        event for event in fold.answer(request, answer(request)) if isinstance(event, Content)
    ]
    assert [event.version.locator for event in contents] == [
        CLAIM.locate(b"/tmp"),
        CLAIM.locate(b"/new"),
    ]


def test_a_renamed_directory_moves_the_files_in_it() -> None:
    fold = fold_of()
    run(fold, write(MAIN, b"/out.tmp/a/x"))
    rename = FileRename(
        at=2,
        container=MAIN,
        volume=CLAIM.key,
        path=b"/out.tmp",
        target=b"/out",
        directory=True,
        children=(b"a/x", b"unseen"),
    )
    made = [e.version for e in run(fold, rename) if isinstance(e, Generated)]
    assert [version.locator for version in made] == [
        CLAIM.locate(b"/out/a/x"),
        CLAIM.locate(b"/out/unseen"),
    ]
    assert run(fold, read(MAIN, b"/out/a/x", handle=b"/out.tmp/a/x")) == []


def test_what_an_unwatched_process_renames_or_removes_is_not_recorded() -> None:
    fold = fold_of()
    run(fold, write(MAIN))
    assert run(fold, FileRemoval(at=2, container=None, volume=CLAIM.key, path=b"/raw")) == []
    assert brief(run(fold, read(MAIN))) == [("Used", "open", Version(RAW, POD, 2))]


def test_a_removal_invalidates_the_version_that_is_there() -> None:
    fold = fold_of()
    gone = FileRemoval(at=2, container=MAIN, volume=CLAIM.key, path=b"/raw")
    assert brief(run(fold, write(MAIN), gone, gone)) == [
        ("Generated", "write", Version(RAW, MAIN, 1)),
        ("Invalidated", "delete", Version(RAW, MAIN, 1)),
        ("Invalidated", "delete", Version(RAW, POD, 2)),
    ]


def test_a_file_that_keeps_its_beginning_was_continued() -> None:
    fold = fold_of()
    run(fold, read(FOREIGN))
    (first,) = fold.take_requests()
    fold.answer(first, answer(first))
    longer = FileState(size=9, mtime=20, ctime=20, mode=0o100644)
    run(fold, write(MAIN, state=longer))
    (second,) = fold.take_requests()
    assert (second.base_size, second.base_digest) == (3, answer(first).digest)
    assert not brief(fold.answer(second, answer(second, "2")))
    run(fold, write(FOREIGN, state=longer, at=300))
    (third,) = fold.take_requests()
    (used,) = brief(fold.answer(third, answer(third, "3", kept_base=True)))
    assert used == ("Used", "append", Version(RAW, OTHER, 3))


def test_an_observer_that_knows_how_a_file_was_opened_needs_no_digest() -> None:
    assert len(brief(run(fold_of(), read(FOREIGN), write(MAIN, kept=False)))) == 2
    fold = fold_of()
    continued = brief(run(fold, write(MAIN, kept=True)))
    assert ("Used", "append", Version(RAW, POD, 2)) in continued
    assert [request.version.maker for request in fold.take_requests()] == [MAIN]


def test_it_is_a_gap_if_the_earlier_content_of_a_written_file_is_not_known() -> None:
    old = FileState(size=3, mtime=10, ctime=10, mode=0o100644, born=1)
    events = run(fold_of(), write(MAIN, state=old), write(MAIN, b"/b", state=old))
    assert len([event for event in events if isinstance(event, Gap)]) == 1


def test_the_same_path_on_two_volumes_is_two_files_and_others_are_not_recorded() -> None:
    scratch = empty_dir_volume(POD, "scratch")
    fold = fold_of(CLAIM, scratch)
    events = run(
        fold, write(MAIN), read(MAIN, volume=scratch.key), read(MAIN, volume="pvc://x/y@z")
    )
    assert [version.locator for _, _, version in brief(events)] == [RAW, scratch.locate(b"/raw")]


def test_names_of_any_bytes_have_locators() -> None:
    path = b"/\xff\n%\xc3\xbc"
    (event,) = brief(run(fold_of(), write(MAIN, path)))
    assert event[2].locator == "pvc://ml/data@pv-1/%FF\n%25ü"


def test_a_pod_that_ran_before_counts_from_a_number_that_no_count_reaches() -> None:
    fold = fold_of()
    fold.counter.start_late(POD, 1_700_000_000_000_000_000)
    (event,) = brief(run(fold, write(MAIN)))
    assert event[2].ordinal == 1_700_000_001


containers = st.sampled_from([MAIN, SECOND, FOREIGN])
paths = st.sampled_from([b"/a", b"/b", b"/d/a"])
steps = st.one_of(
    st.builds(read, containers, paths),
    st.builds(write, containers, paths, closed=st.booleans(), read=st.booleans()),
    st.builds(
        FileRemoval, at=st.just(1), container=containers, volume=st.just(CLAIM.key), path=paths
    ),
    st.builds(
        FileRename,
        at=st.just(1),
        container=containers,
        volume=st.just(CLAIM.key),
        path=paths,
        target=paths,
        state=st.just(STATE),
    ),
)


@given(st.lists(steps, max_size=12))
def test_any_accesses_give_versions_with_one_maker_each_and_no_use_of_ones_own(
    accesses: list[Access],
) -> None:
    fold = fold_of()
    makers: dict[Version, Uid] = {}
    for access in accesses:
        for event in fold.apply(access):
            if isinstance(event, Generated):
                assert makers.setdefault(event.version, event.activity) == event.activity
                assert event.version.maker == event.activity
            elif isinstance(event, Used | Invalidated):
                scope = event.version.maker
                assert event.activity == scope or event.activity.startswith(f"{scope}/")
                if isinstance(event, Used) and event.how == "open":
                    assert event.version not in makers
        for request in fold.take_requests():
            fold.answer(request, answer(request))


def gaps_of_the_next_pod(fold: AccessFold, volume: Volume, *exposed: set[str] | None) -> list[str]:
    """A Pod writes and ends; something happens; another Pod writes on."""
    fold.watch(volume, at=10_000_005)
    fold.apply(write(MAIN))
    (request,) = fold.take_requests()
    fold.answer(request, answer(request))
    fold.unwatch(volume.key)
    for keys in exposed:
        fold.expose(keys)
    fold.watch(volume, at=20_000_005)
    return [event.what for event in fold.apply(write(FOREIGN)) if isinstance(event, Gap)]


def test_what_a_pod_left_is_known_unless_something_unwatched_can_have_written() -> None:
    unknown = ["what a file held before it was written"]
    assert gaps_of_the_next_pod(AccessFold(), LOCAL) == []
    assert gaps_of_the_next_pod(AccessFold(), LOCAL, {"other"}) == []
    assert gaps_of_the_next_pod(AccessFold(), LOCAL, {LOCAL.key}) == unknown
    assert gaps_of_the_next_pod(AccessFold(), LOCAL, None) == unknown
    assert gaps_of_the_next_pod(AccessFold(), CLAIM) == unknown
    assert gaps_of_the_next_pod(AccessFold(keep=False), LOCAL) == unknown


def test_a_volume_that_was_written_unseen_while_it_was_watched_is_forgotten() -> None:
    fold = fold_of(LOCAL)
    fold.expose(None)
    assert gaps_of_the_next_pod(fold, LOCAL) == ["what a file held before it was written"]


def test_what_is_kept_of_volumes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tables, "MAX_KEPT_FILES", 0)
    assert gaps_of_the_next_pod(AccessFold(), LOCAL)


def test_the_paths_of_a_pod_are_bounded_and_what_is_left_out_is_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_versions, "MAX_PATHS", 1)
    fold = fold_of()
    other = CLAIM.locate(b"/b")
    assert brief(run(fold, write(FOREIGN, b"/b"), write(MAIN))) == [
        ("Generated", "write", Version(other, FOREIGN, 1)),
        ("Generated", "write", Version(RAW, MAIN, 1)),
    ]
    rename = FileRename(at=100, container=MAIN, volume=CLAIM.key, path=b"/c", target=b"/d")
    removal = FileRemoval(at=100, container=MAIN, volume=CLAIM.key, path=b"/e")
    left_out = run(fold, write(SECOND, b"/b"), read(MAIN, b"/c"), rename, removal)
    told = [(e.activity, e.locator) for e in left_out if isinstance(e, Gap)]
    assert told == [(SECOND, CLAIM.whole), (MAIN, CLAIM.whole)]
    lost = [(e.activity, e.kind) for e in left_out if isinstance(e, Looked)]
    assert lost == [(SECOND, UNWATCHED), (MAIN, UNWATCHED)]
    assert len(left_out) == 4
    assert len(run(fold, read(SECOND), write(MAIN))) == 2
    # It is not the version any more that its first writer made.
    assert brief(run(fold, read(FOREIGN, b"/b"))) == [("Used", "open", Version(other, OTHER, 2))]
