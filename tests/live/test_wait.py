"""What a reading task waits for: resumed within a callback of the event loop, never inside another task."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from ordercast.live.wait import Wait


async def waiting(seen: list[str], wait: Wait) -> None:
    seen.append("waits")
    await wait
    seen.append("woken")


def test_a_callback_resumes_the_task_at_once() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        loop, wait = asyncio.get_running_loop(), Wait()
        task = asyncio.create_task(waiting(seen, wait))
        await asyncio.sleep(0)

        def callback() -> None:
            wait.wake(now=True)
            seen.append("callback goes on")

        loop.call_soon(callback)
        await task
        return seen

    assert asyncio.run(main()) == ["waits", "woken", "callback goes on"]


def test_a_task_resumes_it_in_the_next_cycle() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        wait = Wait()
        task = asyncio.create_task(waiting(seen, wait))
        await asyncio.sleep(0)
        wait.wake(now=False)
        seen.append("waker goes on")
        await task
        return seen

    assert asyncio.run(main()) == ["waits", "waker goes on", "woken"]


def test_woken_before_it_waits() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        wait = Wait()
        wait.wake(now=True)
        await waiting(seen, wait)
        return seen

    assert asyncio.run(main()) == ["waits", "woken"]


def test_a_waiting_task_can_be_cancelled() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        wait = Wait()
        task = asyncio.create_task(waiting(seen, wait))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert wait.cancelled() and not wait.cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await Wait()
        return seen

    assert asyncio.run(main()) == ["waits"]


def test_short_turns_change_nothing_else() -> None:
    code = (
        "import os; from ordercast.live import tuning; os.nice(3); tuning.short_turns();"
        "print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    assert done.stdout.split() == [str(nice), str(os.SCHED_OTHER)]
