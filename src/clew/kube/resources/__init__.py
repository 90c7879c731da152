"""One module per custom resource: the desired children and status, decided without IO.

Also what the kinds share: Services, NetworkPolicies, Pod security and node affinity. Never calls
the API server; `controller` carries out what is decided here.
"""
