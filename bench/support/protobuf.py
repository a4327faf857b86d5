"""Reads protobuf messages without the .proto files and without the code that wrote them."""


def fields(data):
    """Returns [(number, value)] of a message: integers, or bytes for fields with a length or a fixed size."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    found = []
    while at < len(data):
        key = varint()
        kind = key & 7
        assert kind in (0, 1, 2, 5), f'wire type {kind}'
        if kind == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        assert at + size <= len(data), 'cut off'
        found.append((key >> 3, data[at:at + size]))
        at += size
    return found
