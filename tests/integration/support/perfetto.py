"""Reads files of `scadm trace -o FILE.pftrace`: just enough of protobuf and of Perfetto's TrackEvent format
(proto/perfetto.proto), without the code that wrote them."""
from protobuf import fields


def job_bars(data):
    """{node: [(begin, end, job)]} in ns, of all tracks but those of the switches themselves."""
    tracks, nodes, begun, bars = {}, {}, {}, {}
    for _, packet in fields(data):
        packet = dict(fields(packet))
        if 60 in packet:
            track = dict(fields(packet[60]))
            tracks[track[1]] = (track[2].decode(), track.get(5))
            if 3 in track:
                nodes[track[1]] = dict(fields(track[3]))[6].decode()
                bars[nodes[track[1]]] = []
            continue
        event, when = dict(fields(packet[11])), packet[8]
        name, parent = tracks[event[11]]
        if name == 'switches' or event[9] == 3:  # an instant
            continue
        if event[9] == 1:
            assert event[11] not in begun, 'two begins of a track'
            begun[event[11]] = when
        else:
            assert event[9] == 2
            bars[nodes[parent]].append((begun.pop(event[11]), when, name))
    assert not begun, 'a begin without an end'
    return bars
