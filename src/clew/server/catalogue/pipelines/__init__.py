"""The tables of pipelines: `pipelines` with their `versions`, `schedules`, and the `experiments`
that group runs. `due_schedules` queues runs, `samples` adds the sample pipelines, `summaries` joins
all of these for the pages that list them. Never contains HTTP. Imported by the rest of `server`.
"""
