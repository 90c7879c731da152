"""Text for the record. JSON has no place for bytes that are not text: they show as replacement
characters, and where the bytes themselves matter these stand beside, in Base64."""


def decode_text(raw: bytes | str) -> str:
    """Bytes, or what Python made of them, as text that any JSON can hold."""
    if isinstance(raw, str):
        raw = raw.encode(errors="surrogateescape")
    return raw.decode(errors="replace")
