"""A change of names, or an append, is made once though servers are killed before they have answered."""
import os
import threading
import time

import pytest
from test_replicas import wait_in_sync
from volumes import Client, Servers, make_temporary

CLIENTS = 4
RECORDS = 150
SIZE = 100


@pytest.fixture(params=[1, 2], ids=['', 'replicas'])
def servers(request):
    with make_temporary() as root:
        made = Servers(root, 3, replicas=request.param)
        made.replicas = request.param
        if made.replicas == 2:
            wait_in_sync(made)
        yield made
        assert made.stop() == [0, 0, 0], made.log(0) + made.log(1) + made.log(2)


def run_amid_kills(servers, work):
    """`work(client, number, is_over)` in some threads, until servers were killed 24 times (with replicas 6)."""
    is_over, failed = threading.Event(), []

    def run(number):
        client = Client(servers.file, 'tcp')
        try:
            work(client, number, is_over)
        except BaseException as error:
            failed.append(error)
        client.close()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for turn in range(24 // servers.replicas ** 2):
        is_over.wait(0.1)
        servers.kill(turn % 3)
        servers.start(turn % 3)
        if servers.replicas == 2:
            wait_in_sync(servers)
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_changes_of_names(servers):
    """Each of a client's names is its own: all its exclusive creates, renames and removals succeed."""
    def work(client, number, is_over):
        turn = 0
        while not is_over.is_set():
            turn += 1
            name = f'{number}.{turn}'
            client.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL).__exit__()
            client.rename(name, f'{name}.new')
            client.unlink(f'{name}.new')
            client.mkdir(name)
            client.rmdir(name)
        assert turn > 1
    run_amid_kills(servers, work)
    client = Client(servers.file)
    assert client.names() == []
    while client.space().files > 1:  # the root directory; removed files stay while a client that was cut off may have them open
        time.sleep(0.1)
    client.close()


def test_appends(servers):
    """Records of all clients, each once and whole, without gaps."""
    written = {}

    def work(client, number, is_over):
        count = 0
        with client.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
            while not is_over.is_set() or count < RECORDS:
                file.pwrite(f'{number}.{count}'.ljust(SIZE - 1).encode() + b'\n', 0)
                count += 1
        written[number] = count
    run_amid_kills(servers, work)
    client = Client(servers.file)
    records = client.contents('log').decode().splitlines()
    client.close()
    assert sorted(record.strip() for record in records) == sorted(f'{number}.{i}' for number in written for i in range(written[number]))
