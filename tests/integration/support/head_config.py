"""What a test adds to the head's configuration file."""
MARK = '\n# of the test\n'


def config_of(cluster):
    return cluster.directory / 'head' / 'scored.toml'


def write(cluster, text):
    """Replaces what an earlier call has added."""
    path = config_of(cluster)
    path.write_text(path.read_text().split(MARK)[0] + MARK + text)


def configure(cluster, text):
    write(cluster, text)
    cluster.run('scadm', 'reload')
