"""Walking back: doing recorded work again, and saying what came out differently.

Here belong what a repeat needs to see (`scenery`), where it comes from (`cache`), the sandbox it
runs in, comparing and explaining, the memo of what is still valid, and what leaves for other
machines (images). Deciding is done on what `prov` recorded, as pure functions; running goes
through `run`. The Python interface and the command line may import this room.
"""
