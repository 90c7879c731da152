"""Checks of the packages that `make dist` builds."""
