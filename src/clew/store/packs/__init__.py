"""Pack files: chunking of content, the format of a pack, and its writer.

Never decides what is stored or deleted. Imported by `store` alone.
"""
