"""The facet `kubernetes`: what is written is read; agents cannot send another shape."""

import pytest

from clew.documents.ids import Uid
from clew.errors import Rejected
from clew.prov.cluster.activity_uids import POD
from clew.prov.cluster.facets import (
    FACET,
    Backing,
    ClaimFacet,
    Owner,
    PodFacet,
    read_facet,
    write_facet,
)
from clew.prov.cluster.observation_validation import check_observations
from clew.prov.events import Started

UID = Uid("a" * 32)


def test_facet_is_read_as_it_was_written() -> None:
    pod = PodFacet(
        namespace="team",
        name="train",
        owner=Owner(api_version="batch/v1", kind="Job", name="train", uid="u"),
        spec={"containers": [{"name": "main"}]},
    )
    claim = ClaimFacet(namespace="team", name="data", backing=Backing(driver="nfs", path="/x"))

    assert read_facet(write_facet(pod), PodFacet) == pod
    assert read_facet(write_facet(claim), ClaimFacet) == claim
    assert "labels" not in write_facet(pod)[FACET], "what is not known is left out"


@pytest.mark.parametrize("facets", [{}, {FACET: []}, {FACET: {"namespace": 1, "name": "x"}}])
def test_other_shape_is_no_facet(facets: dict[str, object]) -> None:
    assert read_facet(facets, PodFacet) is None


def test_agent_cannot_send_a_facet_of_another_shape() -> None:
    begun = Started(
        execution=UID, n=1, at=1, activity=UID, kind=POD, facets={FACET: {"name": ["x"]}}
    )

    with pytest.raises(Rejected, match="kubernetes"):
        check_observations(UID, [begun])
