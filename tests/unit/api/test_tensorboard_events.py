"""Scalars of event files that TensorBoard's own writers wrote."""

from base64 import b64decode

from hypothesis import given
from hypothesis import strategies as st

from clew.api.tensorboard_events import read_scalars

SIMPLE = b64decode(  # tensorboardX: 1.5, 0.75, 0.5 at the steps 0, 1, 2
    "GAAAAAAAAACjf0siCfAN5ybmvtpBGg1icmFpbi5FdmVudDoyf3XfQx4AAAAAAAAA2dwSMgkeF+cm5r7aQSoTChEKCnRyYWlu"
    "L2xvc3MVAADAP4oFoosgAAAAAAAAACntqVAJNxrnJua+2kEQASoTChEKCnRyYWluL2xvc3MVAABAPxyOivogAAAAAAAAACnt"
    "qVAJPR3nJua+2kEQAioTChEKCnRyYWluL2xvc3MVAAAAP6wcjiM="
)
TENSOR = b64decode(  # tensorboard's scalar_pb, as TensorFlow 2 and Keras write it
    "SAAAAAAAAAD+kkidCT1L+ibmvtpBGg1icmFpbi5FdmVudDoyUi4KLHRlbnNvcmJvYXJkLnN1bW1hcnkud3JpdGVyLmV2ZW50"
    "X2ZpbGVfd3JpdGVyaJS9ZS0AAAAAAAAAPEGK+yorCikKDmVwb2NoX2FjY3VyYWN5QgoIARIAKgQAAIA+SgsKCQoHc2NhbGFy"
    "c0JUftcvAAAAAAAAAG1dHVAQBSorCikKDmVwb2NoX2FjY3VyYWN5QgoIARIAKgQAAAA/SgsKCQoHc2NhbGFycyDHAaI="
)


def test_both_forms_of_scalars() -> None:
    assert read_scalars(SIMPLE) == {"train/loss": [(0, 1.5), (1, 0.75), (2, 0.5)]}
    assert read_scalars(TENSOR) == {"epoch_accuracy": [(0, 0.25), (5, 0.5)]}


def test_a_file_that_is_still_written() -> None:
    assert read_scalars(SIMPLE[:-1]) == {"train/loss": [(0, 1.5), (1, 0.75)]}


@given(st.binary(max_size=300), st.integers(0, len(SIMPLE)))
def test_any_bytes_can_be_read(noise: bytes, at: int) -> None:
    read_scalars(noise)
    read_scalars(SIMPLE[:at] + noise + SIMPLE[at:])


def test_a_scalar_without_a_tag_ends_the_reading() -> None:
    event = b"\x2a\x07\x0a\x05\x15\x00\x00\x80\x3f"
    assert read_scalars(len(event).to_bytes(8, "little") + bytes(4) + event + bytes(4)) == {}


def test_a_step_that_json_cannot_express_is_none() -> None:
    value = b"\x0a\x01t\x15\x00\x00\x80\x3f"
    event = b"\x10" + b"\xff" * 9 + b"\x7f\x2a\x0a\x0a\x08" + value
    data = len(event).to_bytes(8, "little") + bytes(4) + event + bytes(4)
    assert read_scalars(data) == {"t": [(0, 1.0)]}
