"""The simulator for speed: the reference's events and models in one function that numba compiles.

It follows `_simulate._Reference` and the built-in stations operation by operation; property tests hold
both to 1e-9. Every tenant has at most one task in flight, so that all state stands in arrays by tenant.
The first call compiles (and keeps the result on disk beside this file or in the user's cache).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from jostle.accelerator._models import Concurrent, Model, Sequential
from jostle.accelerator._simulate import TOLERANCE, Schedule, Tenant, prepared_of

if TYPE_CHECKING:
    from jostle.accelerator._device import Device

_CONCURRENT, _SEQUENTIAL, _SLICED = 0, 1, 2
_LIMIT = 1 << 60


def simulate_compiled(
    tenants: Sequence[Tenant],
    device: Device,
    kernels: Model,
    resources: tuple[str, ...],
    until_seconds: float,
) -> Schedule:
    """As simulate, for the built-in models."""
    prepared = prepared_of(tenants, device, resources)
    unique = {id(p): p for p in prepared}
    offset, first = 0, {}
    for key, p in unique.items():
        first[key], offset = offset, offset + len(p.gap)
    columns = [
        np.concatenate([getattr(p, name) for p in unique.values()])
        for name in next(iter(unique.values()))._fields
    ]
    arrivals = [
        np.zeros(0) if t.arrivals is None else np.asarray(t.arrivals, np.float64) for t in tenants
    ]
    capacity = np.array([device.resources.get(r, np.inf) for r in resources])
    users, klass = np.unique(columns[6] > 0, axis=0, return_inverse=True)
    merge = 0.0
    mode = _SEQUENTIAL if isinstance(kernels, Sequential) else _SLICED
    if isinstance(kernels, Concurrent):
        mode, merge = _CONCURRENT, kernels.merge_ratio
    lengths = np.array([len(p.gap) for p in prepared])
    arguments: tuple[Any, ...] = (
        *columns,
        users,
        klass.reshape(-1),
        np.array([first[id(p)] for p in prepared]),
        lengths,
        np.array([t.start_seconds for t in tenants], np.float64),
        np.array([-1 if t.runs is None else t.runs for t in tenants], np.int64),
        np.concatenate(arrivals),
        np.concatenate([[0], np.cumsum([len(a) for a in arrivals])]).astype(np.int64),
        np.array([t.partition for t in tenants], np.int64),
        np.array([_LIMIT if t.most_pes is None else t.most_pes for t in tenants], np.float64),
        np.array([pool.pes for pool in device.pools], np.float64),
        np.array([capacity * pool.resource_ratio for pool in device.pools], np.float64),
        mode,
        float(device.time_slice_seconds),
        1 if device.bus == "shared" else 2,
        float(merge),
        float(until_seconds),
    )
    ends, latencies, runs_done, task_ends, count = _run(*arguments)
    parts = np.split(task_ends, np.cumsum(lengths)[:-1])
    done: list[Any] = [slice(0, int(n)) for n in runs_done]
    return Schedule(
        tuple(ends[a, part] for a, part in enumerate(done)),
        tuple(latencies[a, part] for a, part in enumerate(done)),
        tuple(parts),
        int(count),
        "compiled",
    )


@njit(inline="always")
def _insert(clock, a, started, end, end_at, of, chunks, head, tail):
    """A group into its clock's queue, which ascends by end and starts at head."""
    if tail[clock] == end_at.shape[1]:
        n = 0
        for g in range(head[clock], tail[clock]):
            end_at[clock, n], of[clock, n] = end_at[clock, g], of[clock, g]
            chunks[clock, n] = chunks[clock, g]
            n += 1
        head[clock], tail[clock] = 0, n
    place = tail[clock]
    while place > head[clock] and end_at[clock, place - 1] > end:
        end_at[clock, place], of[clock, place] = end_at[clock, place - 1], of[clock, place - 1]
        chunks[clock, place] = chunks[clock, place - 1]
        place -= 1
    end_at[clock, place], of[clock, place], chunks[clock, place] = end, a, started
    tail[clock] += 1


@njit(inline="always")
def _dispatch(
    queue, queued, waiting, resident, settled, size, work, needs, users, klass, task, partition,
    most, free, pool_pes, pool_capacity, loads, stretch, clocks, end_at, of, chunks, head, tail,
    merge, again,
):  # fmt: skip
    """Free PEs to the oldest kernels, then the stretch of every clock where that changed."""
    classes, kinds = users.shape
    blocked = 0
    for q in range(queued):
        a = queue[q]
        if waiting[a] == 0:
            continue
        pool = partition[a]
        if (blocked >> pool) & 1:
            continue
        i = task[a]
        room = int((free[pool] + 1e-9) / size[i])
        own = _LIMIT
        if most[a] < _LIMIT:
            own = max(1, int((most[a] + 1e-9) / size[i])) - resident[a]
        started = min(waiting[a], room, own)
        if started > 0:
            waiting[a] -= started
            resident[a] += started
            free[pool] -= started * size[i]
            clock = pool * classes + klass[i]
            end = clocks[clock] + work[i]
            number = started
            if merge > 0.0:
                for g in range(head[clock], tail[clock]):
                    left = end_at[clock, g] - clocks[clock]
                    if of[clock, g] == a and abs(work[i] - left) <= merge * work[i]:
                        number += chunks[clock, g]
                        left = (chunks[clock, g] * left + started * work[i]) / number
                        end = clocks[clock] + left
                        for n in range(g, tail[clock] - 1):
                            end_at[clock, n], of[clock, n] = end_at[clock, n + 1], of[clock, n + 1]
                            chunks[clock, n] = chunks[clock, n + 1]
                        tail[clock] -= 1
                        break
            _insert(clock, a, number, end, end_at, of, chunks, head, tail)
        if waiting[a] > 0 and own > started:
            blocked |= 1 << pool
            if len(free) == 1:
                break
    if kinds == 0:
        return
    changed = again
    for q in range(queued):
        a = queue[q]
        if resident[a] != settled[a]:
            settled[a] = resident[a]
            changed = True
    if not changed:
        return
    loads[:, :] = 0.0
    for q in range(queued):
        a = queue[q]
        if resident[a] > 0:
            pes = min(pool_pes[partition[a]], float(resident[a]))
            for r in range(kinds):
                loads[partition[a], r] += needs[task[a], r] * pes
    for pool in range(len(free)):
        for c in range(classes):
            most_stretched = 1.0
            for r in range(kinds):
                if users[c, r]:
                    most_stretched = max(most_stretched, loads[pool, r] / pool_capacity[pool, r])
            stretch[pool * classes + c] = most_stretched


@njit(cache=True, nogil=True)
def _speeds(sharing, count, link, task, speed, order):
    """Max-min fair shares of a link, none faster than alone."""
    for n in range(count):  # insertion by link ratio, stable
        place = n
        while place > 0 and link[task[order[place - 1]]] > link[task[sharing[n]]]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = sharing[n]
    room, waiting = 1.0, count
    for n in range(count):
        a = order[n]
        given = min(link[task[a]], room / waiting)
        speed[a] = given / link[task[a]]
        room -= given
        waiting -= 1


@njit(cache=True, nogil=True, error_model="numpy")
def _run(
    kind, gap, seconds, chunks, size, work, needs, exclusive, link, users, klass,
    first, length, start, runs, arrivals, arrivals_at, partition, most,
    pool_pes, pool_capacity, mode, slice_seconds, links, merge, until_seconds,
):  # fmt: skip
    tenants = len(first)
    room = 16
    for a in range(tenants):
        room = max(room, runs[a])
    ends = np.empty((tenants, room))
    latencies = np.empty((tenants, room))
    done_runs = np.zeros(tenants, np.int64)
    ends_at = np.zeros(tenants, np.int64)
    for a in range(1, tenants):
        ends_at[a] = ends_at[a - 1] + length[a - 1]
    task_ends = np.full(ends_at[-1] + length[-1], np.nan)

    ready = np.empty(tenants)
    began = np.empty(tenants)
    task = np.empty(tenants, np.int64)  # the row of the task at hand
    finished = np.empty(tenants, np.int64)
    left = np.zeros(tenants)
    # kernels
    queue = np.empty(tenants, np.int64)
    queued = 0
    waiting = np.zeros(tenants, np.int64)
    resident = np.zeros(tenants, np.int64)
    settled = np.zeros(tenants, np.int64)  # resident when the stretches were last computed
    free = pool_pes.copy()
    loads = np.zeros_like(pool_capacity)
    smallest = 1.0
    for i in range(len(size)):
        if kind[i] == 0:
            smallest = min(smallest, size[i])
    # All kernels of a partition that use the same resources are stretched alike: each such class has a
    # clock of its own, on which a group's end never moves.
    classes = users.shape[0]
    clocks = np.zeros(len(free) * classes)
    stretch = np.ones(len(clocks))
    most_groups = int(pool_pes.sum() / smallest + 1) + tenants + 64
    group_end = np.empty((len(clocks), most_groups))
    group_of = np.empty((len(clocks), most_groups), np.int64)
    group_chunks = np.empty((len(clocks), most_groups), np.int64)
    head = np.zeros(len(clocks), np.int64)
    tail = np.zeros(len(clocks), np.int64)
    slice_left = np.inf
    # links
    exclusive_queue = np.empty((2, tenants), np.int64)
    exclusive_count = np.zeros(2, np.int64)
    sharing = np.empty((2, tenants), np.int64)
    sharing_count = np.zeros(2, np.int64)
    speed = np.ones(tenants)
    order = np.empty(tenants, np.int64)

    open_tenants = 0
    for a in range(tenants):
        open_tenants += runs[a] >= 0
        task[a] = first[a]
        began[a] = start[a]
        if arrivals_at[a + 1] > arrivals_at[a]:
            began[a] = arrivals[arrivals_at[a]]
        ready[a] = max(start[a], began[a]) + gap[first[a]]

    now, count = 0.0, 0
    while open_tenants > 0:
        change = np.inf
        groups, busy = 0, 0
        if mode == 0:
            for c in range(len(clocks)):
                if tail[c] > head[c]:
                    change = min(change, (group_end[c, head[c]] - clocks[c]) * stretch[c])
                    groups += tail[c] - head[c]
                    busy = c
        elif queued > 0:
            change = left[queue[0]]
            if mode == 2:
                change = min(change, slice_left)
        for k in range(links):
            if exclusive_count[k] > 0:
                change = min(change, left[exclusive_queue[k, 0]])
            else:
                for n in range(sharing_count[k]):
                    a = sharing[k, n]
                    change = min(change, left[a] / speed[a])
        then = now + change
        for a in range(tenants):
            then = min(then, ready[a])
        if mode == 0 and groups == 1 and then == now + change:
            # One group alone: its whole batches, up to what comes next, are one step.
            g = head[busy]
            a = group_of[busy, g]
            batches = waiting[a] // group_chunks[busy, g]
            if batches > 1:
                until = np.inf
                for b in range(tenants):
                    until = min(until, ready[b])
                for k in range(links):
                    if exclusive_count[k] > 0:
                        until = min(until, now + left[exclusive_queue[k, 0]])
                    else:
                        for n in range(sharing_count[k]):
                            until = min(until, now + left[sharing[k, n]] / speed[sharing[k, n]])
                each = work[task[a]] * stretch[busy]
                if until - then < each * batches:
                    batches = int((until - then) / each)
                batches -= 1
                if batches > 0:
                    waiting[a] -= batches * group_chunks[busy, g]
                    group_end[busy, g] += batches * work[task[a]]
                    then = now + (group_end[busy, g] - clocks[busy]) * stretch[busy]
        then = max(then, now)
        if then > until_seconds:
            break
        passed = then - now
        tolerance = TOLERANCE * then
        now = then
        completed = 0

        if mode == 0:
            ended = 0
            left_one = False
            for c in range(len(clocks)):
                if tail[c] == head[c]:
                    continue
                clocks[c] += passed / stretch[c]
                while tail[c] > head[c]:
                    g = head[c]
                    if (group_end[c, g] - clocks[c]) * stretch[c] > tolerance:
                        break
                    a = group_of[c, g]
                    resident[a] -= group_chunks[c, g]
                    free[partition[a]] += group_chunks[c, g] * size[task[a]]
                    left_one = left_one or (resident[a] == 0 and waiting[a] == 0)
                    head[c] += 1
                    ended += 1
            if left_one:
                kept = 0
                for q in range(queued):
                    a = queue[q]
                    if waiting[a] == 0 and resident[a] == 0:
                        finished[completed] = a
                        completed += 1
                    else:
                        queue[kept] = a
                        kept += 1
                queued = kept
            if ended:
                _dispatch(
                    queue, queued, waiting, resident, settled, size, work, needs, users, klass,
                    task, partition, most, free, pool_pes, pool_capacity, loads, stretch, clocks,
                    group_end, group_of, group_chunks, head, tail, merge, left_one,
                )  # fmt: skip
        elif queued > 0:
            a = queue[0]
            left[a] -= passed
            slice_left -= passed
            if left[a] <= tolerance:
                finished[completed] = a
                completed += 1
                queued -= 1
                for q in range(queued):
                    queue[q] = queue[q + 1]
                slice_left = slice_seconds if queued > 1 else np.inf
            elif mode == 2 and slice_left <= tolerance:
                for q in range(queued - 1):
                    queue[q] = queue[q + 1]
                queue[queued - 1] = a
                slice_left = slice_seconds
        for k in range(links):
            if exclusive_count[k] > 0:
                a = exclusive_queue[k, 0]
                left[a] -= passed
                if left[a] <= tolerance:
                    finished[completed] = a
                    completed += 1
                    exclusive_count[k] -= 1
                    for n in range(exclusive_count[k]):
                        exclusive_queue[k, n] = exclusive_queue[k, n + 1]
            elif sharing_count[k] > 0:
                kept = 0
                for n in range(sharing_count[k]):
                    a = sharing[k, n]
                    left[a] -= passed * speed[a]
                    if left[a] <= tolerance * speed[a]:
                        finished[completed] = a
                        completed += 1
                    else:
                        sharing[k, kept] = a
                        kept += 1
                if kept < sharing_count[k]:
                    sharing_count[k] = kept
                    _speeds(sharing[k], kept, link, task, speed, order)

        for n in range(completed):
            a = finished[n]
            count += 1
            if done_runs[a] == 0:
                task_ends[ends_at[a] + task[a] - first[a]] = now
            task[a] += 1
            if task[a] < first[a] + length[a]:
                ready[a] = now + gap[task[a]]
                continue
            run = done_runs[a]
            if run == ends.shape[1]:
                more = np.empty((tenants, 2 * run))
                more[:, :run] = ends
                ends = more
                again = np.empty((tenants, 2 * run))
                again[:, :run] = latencies
                latencies = again
            ends[a, run] = now
            latencies[a, run] = now - began[a]
            run += 1
            done_runs[a] = run
            if run == runs[a]:
                ready[a] = np.inf
                open_tenants -= 1
                continue
            began[a] = now
            if arrivals_at[a + 1] > arrivals_at[a]:
                began[a] = arrivals[arrivals_at[a] + run]
            task[a] = first[a]
            ready[a] = max(now, began[a]) + gap[first[a]]

        for a in range(tenants):
            if ready[a] <= now + tolerance:
                ready[a] = np.inf
                i = task[a]
                if kind[i] == 0:
                    queue[queued] = a
                    queued += 1
                    if mode == 0:
                        waiting[a] = chunks[i]
                        resident[a] = 0
                        settled[a] = 0
                        _dispatch(
                            queue, queued, waiting, resident, settled, size, work, needs, users,
                            klass, task, partition, most, free, pool_pes, pool_capacity, loads,
                            stretch, clocks, group_end, group_of, group_chunks, head, tail, merge,
                            False,
                        )  # fmt: skip
                    else:
                        left[a] = seconds[i]
                        if queued == 2:
                            slice_left = slice_seconds
                    continue
                left[a] = seconds[i]
                k = 1 if kind[i] == 2 and links == 2 else 0
                if exclusive[i]:
                    exclusive_queue[k, exclusive_count[k]] = a
                    exclusive_count[k] += 1
                else:
                    sharing[k, sharing_count[k]] = a
                    sharing_count[k] += 1
                    _speeds(sharing[k], sharing_count[k], link, task, speed, order)
    return ends, latencies, done_runs, task_ends, count
