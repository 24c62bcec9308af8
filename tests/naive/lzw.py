"""Unix compress, written out: the slow inverse of `abex.lab.datasets.source_files.uncompress`."""

CLEAR = 256


def compress(content: bytes, widest: int = 16, clears: bool = True) -> bytes:
    """LZW codes of growing width in groups of eight; the table is emptied when it is full (``clears``)."""
    bits: list[int] = []
    mark = 0
    width, table, free = 9, {}, CLEAR + 1 if clears else CLEAR

    def pad() -> None:
        nonlocal mark
        while (len(bits) - mark) % (8 * width):
            bits.append(0)
        mark = len(bits)

    def emit(code: int) -> None:
        nonlocal width
        bits.extend((code >> k) & 1 for k in range(width))
        if free > (1 << width) - 1 and width < max(widest, 10):  # as gzip reads them
            pad()
            width += 1

    word = None
    for byte in content:
        if word is None:
            word = byte
        elif (word, byte) in table:
            word = table[word, byte]
        else:
            emit(word)
            if free < 1 << widest:
                table[word, byte] = free
                free += 1
            elif clears:
                bits.extend((CLEAR >> k) & 1 for k in range(width))
                pad()
                width, table, free = 9, {}, CLEAR + 1
            word = byte
    if word is not None:
        emit(word)
    while len(bits) % 8:
        bits.append(0)
    packed = bytes(sum(bits[i + k] << k for k in range(8)) for i in range(0, len(bits), 8))
    return b"\x1f\x9d" + bytes([widest | (0x80 if clears else 0)]) + packed
