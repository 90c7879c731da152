"""Culling: finds out when a server was last used, and stops it when it was idle for too long."""
