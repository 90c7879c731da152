"""The documents of a project as a whole: its status, its activities in one table, what gc and fsck
report, notes and tags, the settings of the web app, the traffic of the proxy. What belongs to one
kind of thing is in the package of that kind. Any package may import it."""
