"""A second process, with the compiler off, that computes the same states: kernels against their plain Python bodies."""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import wane
from wane.registry import lookup
from wane.testing.cases import Case
from wane.testing.streams import Stream

_LENGTH = struct.Struct("<Q")


class Twin:
    """A running process without the compiler; one serves every case."""

    def __init__(self) -> None:
        above = str(Path(wane.__file__).parents[1])
        paths = [above, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from wane.testing.twin import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(paths)},
        )
        atexit.register(self.close)

    def state(self, case: Case, stream: Stream) -> bytes:
        """The state of a case over a stream, as the plain Python bodies compute it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        made = (case.spec.name, case.decay, dict(case.parameters), case.landmark, case.ids)
        _send(self._process.stdin, pickle.dumps((made, stream)))
        found = pickle.loads(_receive(self._process.stdout))
        if isinstance(found, Exception):
            raise found
        return bytes(found)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@functools.cache
def twin() -> Twin:
    """The process, started when it is first asked for."""
    return Twin()


def serve() -> None:
    """Answer what comes in until it ends."""
    inward, outward = sys.stdin.buffer, sys.stdout.buffer
    while head := inward.read(_LENGTH.size):
        (name, *rest), stream = pickle.loads(inward.read(*_LENGTH.unpack(head)))
        try:
            found: Any = Case(lookup(name), *rest).fed(stream).to_bytes()
        except Exception as why:
            found = why
        _send(outward, pickle.dumps(found))


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)) + message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    return pipe.read(*_LENGTH.unpack(pipe.read(_LENGTH.size)))
