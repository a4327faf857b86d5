"""Runs one call of an Executor: python -m scored.worker FILE.call"""
from __future__ import annotations

import os
import pathlib
import pickle
import sys
from multiprocessing import spawn


def main(path: pathlib.Path) -> int:
    preparation, call = pickle.loads(path.read_bytes())
    spawn.prepare(preparation)  # imports the caller's main module, as multiprocessing does
    try:
        function, args, kwargs = pickle.loads(call)
        outcome = pickle.dumps((True, function(*args, **kwargs)))
    except BaseException as error:  # it is raised again by Future.result()
        outcome = pickle.dumps((False, error))
    made = path.with_suffix('.part')
    made.write_bytes(outcome)
    os.replace(made, path.with_suffix('.result'))
    return 0


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
