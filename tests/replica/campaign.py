"""Many histories of objects in simulated groups that are hurt, each judged: `python -m tests.replica.campaign 0:100`.

Every seed is a group of totem, token_site or toto under `primary-majority`, with crashes and splits; its dictionary,
counter and queue must be linearizable, and the numbers of its lock grow.  Prints one line per history that is not so.
"""

from __future__ import annotations

import sys
import time

from ordercast.types import PRIMARY_MAJORITY

from .simulated import run
from .test_histories import broken_of, scenario

PROTOCOLS = ("totem", "token_site", "toto")


def main(span: str, seconds: float = 220.0) -> int:
    first, last = map(int, span.split(":"))
    begun, bad, done, answers, fences = time.monotonic(), 0, 0, 0, 0
    for seed in range(first, last):
        if time.monotonic() - begun > seconds:
            break
        protocol = PROTOCOLS[seed % len(PROTOCOLS)]
        histories, _ = run(scenario(seed, protocol, PRIMARY_MAJORITY))
        broken = broken_of(histories)
        for words in broken:
            print(f"seed {seed}, {protocol}: {words}", flush=True)
        bad += bool(broken)
        done += 1
        answers += histories.answers
        fences += sum(1 for op in histories.ops["l"] if op.method == "_ask" and op.answer)
    print(f"{first}:{first + done}: {done} histories, {answers} answers, {fences} owners of the lock; {bad} broken")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
