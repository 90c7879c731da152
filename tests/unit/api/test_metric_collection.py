"""Metrics of files that anybody may have written."""

from clew.api.metric_collection import read_metrics_file


def test_numbers_are_named_by_their_paths() -> None:
    found = read_metrics_file(b'{"loss": 1, "train": {"acc": 0.5, "ok": true}, "n": "x"}')
    assert found == {"loss": 1, "train.acc": 0.5}


def test_the_names_are_not_much_larger_than_the_file() -> None:
    deep = b'{"n":1,"' + b'":{"n":1,"'.join([b"a" * 1000] * 200) + b'":1' + b"}" * 200
    wide = b'{"loss":1,"' + b"a" * 900 + b'":{' + b",".join(b'"%d":1' % n for n in range(9999))
    for content in (deep, wide + b"}}"):
        names = read_metrics_file(content)
        assert names
        assert sum(map(len, names)) <= 1000 * 1000
