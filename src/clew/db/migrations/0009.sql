-- Schema 9: find archives by the ends of their names, without a scan of all locations.

CREATE INDEX location_archive ON location (project)
WHERE substr(locator, length(locator) - 3) IN ('.zip', '.tar', '.tgz', 'r.gz', '.bz2', '.tbz', 'r.xz', '.txz');
