"""The loop of the compiled simulator: the reference's events and models in one function for numba.

It follows `_simulate._Reference` and the built-in stations event by event; property tests hold both to
1e-9. Every tenant has at most one task in flight, so that all state stands in arrays by tenant. What makes
it fast, none of it an approximation:

- All kernels of a partition that use the same resources are stretched alike, so each such class has a
  clock of its own, on which the end of a group of chunks never moves.
- The chunks of a kernel all take the same time on that clock, so its groups end in the order in which they
  started: a ring for each tenant, of which only the head can be next.
- The oldest kernel with chunks left (the leader) takes back every PE that it frees. As long as nothing else
  happens, its groups repeat, and whole rounds of them are one step.
- A link is touched when something on it begins or ends, and not in between.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jostle.accelerator._simulate import TOLERANCE

CONCURRENT, SEQUENTIAL, SLICED = 0, 1, 2
LIMIT = 1 << 60


@njit(inline="always")
def _start(a, number, clock, work, merge, mask, ring_end, ring_chunks, head, groups, next_end):
    """`number` chunks of tenant a begin: a group of their own, or part of the one before."""
    end = clock + work
    last = (head[a] + groups[a] - 1) & mask
    # Only the last group can be near: an earlier one was too far when the last began.
    if merge > 0.0 and groups[a] > 0 and end - ring_end[a, last] <= merge * work:
        both = ring_chunks[a, last] + number
        mean = (ring_chunks[a, last] * (ring_end[a, last] - clock) + number * work) / both
        ring_end[a, last] = clock + mean
        ring_chunks[a, last] = both
    else:
        last = (head[a] + groups[a]) & mask
        ring_end[a, last] = end
        ring_chunks[a, last] = number
        groups[a] += 1
    next_end[a] = ring_end[a, head[a] & mask]


@njit(cache=True, nogil=True, error_model="numpy")
def _renew(k, now, exclusive_queue, exclusive_count, sharing, sharing_count, ratio, left, speed,
           order, bus_at, bus_next):  # fmt: skip
    """The speeds on link k from now on, and when the next transfer there ends: exclusive ones go one by
    one at full speed, the others share max-min fairly, none faster than alone."""
    bus_at[k] = now
    if exclusive_count[k] > 0:
        bus_next[k] = now + left[exclusive_queue[k, 0]]
        return
    count = sharing_count[k]
    for n in range(count):  # insertion by link ratio, stable
        place = n
        while place > 0 and ratio[order[place - 1]] > ratio[sharing[k, n]]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = sharing[k, n]
    room, waiting, soonest = 1.0, count, np.inf
    for n in range(count):
        a = order[n]
        given = min(ratio[a], room / waiting)
        speed[a] = given / ratio[a]
        room -= given
        waiting -= 1
        soonest = min(soonest, left[a] / speed[a])
    bus_next[k] = now + soonest


@njit(inline="always")
def _settle(k, now, exclusive_queue, exclusive_count, sharing, sharing_count, left, speed, bus_at):
    """What moved on link k since it was last touched."""
    passed = now - bus_at[k]
    if exclusive_count[k] > 0:
        left[exclusive_queue[k, 0]] -= passed
    else:
        for n in range(sharing_count[k]):
            left[sharing[k, n]] -= passed * speed[sharing[k, n]]


@njit(cache=True, nogil=True, error_model="numpy")
def run(
    kind, gap, seconds, chunks, size, work, needs, exclusive, link, users, klass,
    first, length, start, runs, arrivals, arrivals_at, partition, most,
    pool_pes, pool_capacity, mode, slice_seconds, links, merge, until_seconds,
):  # fmt: skip
    tenants, pools = len(first), len(pool_pes)
    classes, kinds = users.shape
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
    finished = np.empty(tenants, np.uint32)
    left = np.zeros(tenants)
    # kernels
    queue = np.empty(tenants, np.uint32)
    queued = 0
    waiting = np.zeros(tenants, np.int64)
    resident = np.zeros(tenants, np.int64)
    settled = np.zeros(tenants, np.int64)  # resident when the stretches were last computed
    most_chunks = np.full(tenants, LIMIT)
    chunk_pes = np.ones(tenants)
    chunk_work = np.zeros(tenants)
    clock_of = np.zeros(tenants, np.uint32)
    free = pool_pes.copy()
    loads = np.zeros_like(pool_capacity)
    clocks = np.zeros(pools * classes)
    stretch = np.ones(len(clocks))
    smallest = 1.0
    for i in range(len(size)):
        if kind[i] == 0:
            smallest = min(smallest, size[i])
    deep = 2
    while deep < pool_pes.max() / smallest + 2:
        deep *= 2
    mask = deep - 1
    ring_end = np.empty((tenants, deep))
    ring_chunks = np.empty((tenants, deep), np.int64)
    head = np.zeros(tenants, np.int64)
    groups = np.zeros(tenants, np.int64)
    next_end = np.full(tenants, np.inf)  # of the head, on its clock
    slice_left = np.inf
    # links
    exclusive_queue = np.empty((2, tenants), np.uint32)
    exclusive_count = np.zeros(2, np.int64)
    sharing = np.empty((2, tenants), np.uint32)
    sharing_count = np.zeros(2, np.int64)
    ratio = np.ones(tenants)
    speed = np.ones(tenants)
    order = np.empty(tenants, np.uint32)
    bus_at = np.zeros(2)  # when left and speed were last put right
    bus_next = np.full(2, np.inf)

    open_tenants = 0
    for a in range(tenants):
        open_tenants += runs[a] >= 0
        task[a] = first[a]
        began[a] = start[a]
        if arrivals_at[a + 1] > arrivals_at[a]:
            began[a] = arrivals[arrivals_at[a]]
        ready[a] = max(start[a], began[a]) + gap[first[a]]
    next_ready = ready.min()

    now, count = 0.0, 0
    while open_tenants > 0:
        until = min(next_ready, bus_next[0], bus_next[1])
        change = np.inf
        leader = tenants
        if mode == CONCURRENT:
            own = np.inf
            for q in range(queued):
                a = queue[q]
                c = clock_of[a]
                remains = (next_end[a] - clocks[c]) * stretch[c]
                if leader == tenants and waiting[a] > 0:
                    leader = a
                    own = remains
                else:
                    change = min(change, remains)
            if leader < tenants and pools == 1:
                a = leader
                if waiting[a] >= resident[a] > 0 and chunk_work[a] > 0.0:
                    c = clock_of[a]
                    each = chunk_work[a] * stretch[c]
                    last = ring_end[a, (head[a] + groups[a] - 1) & mask]
                    spare = min(change, until - now) - (last - clocks[c]) * stretch[c]
                    gap_round = next_end[a] + chunk_work[a] - last
                    if spare >= each and gap_round > merge * chunk_work[a]:
                        rounds = waiting[a] // resident[a]
                        if spare < each * rounds:
                            rounds = int(spare / each)
                        waiting[a] -= rounds * resident[a]
                        for g in range(head[a], head[a] + groups[a]):
                            ring_end[a, g & mask] += rounds * chunk_work[a]
                        next_end[a] = ring_end[a, head[a] & mask]
                        own = (next_end[a] - clocks[c]) * stretch[c]
            change = min(change, own)
        elif queued > 0:
            change = left[queue[0]]
            if mode == SLICED:
                change = min(change, slice_left)
        then = max(now, min(now + change, until))
        if then > until_seconds:
            break
        passed = then - now
        tolerance = TOLERANCE * then
        now = then
        completed = 0
        dispatch = False  # whether free PEs may find a taker
        renewed = False  # whether a kernel has left

        if mode == CONCURRENT:
            if queued > 0:
                for c in range(len(clocks)):
                    clocks[c] += passed / stretch[c]
            if change <= passed + tolerance:
                kept = 0
                for q in range(queued):
                    a = queue[q]
                    c = clock_of[a]
                    while (next_end[a] - clocks[c]) * stretch[c] <= tolerance:
                        number = ring_chunks[a, head[a] & mask]
                        head[a] += 1
                        groups[a] -= 1
                        if a == leader and waiting[a] >= number:
                            waiting[a] -= number
                            _start(
                                a, number, clocks[c], chunk_work[a], merge, mask, ring_end,
                                ring_chunks, head, groups, next_end,
                            )  # fmt: skip
                            continue
                        dispatch = True
                        resident[a] -= number
                        free[partition[a]] += number * chunk_pes[a]
                        next_end[a] = ring_end[a, head[a] & mask] if groups[a] > 0 else np.inf
                    if waiting[a] == 0 and resident[a] == 0:
                        finished[completed] = a
                        completed += 1
                        renewed = True
                    else:
                        queue[kept] = a
                        kept += 1
                queued = kept
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
            elif mode == SLICED and slice_left <= tolerance:
                for q in range(queued - 1):
                    queue[q] = queue[q + 1]
                queue[queued - 1] = a
                slice_left = slice_seconds
        for k in range(links):
            if bus_next[k] > now + tolerance:
                continue
            _settle(
                k,
                now,
                exclusive_queue,
                exclusive_count,
                sharing,
                sharing_count,
                left,
                speed,
                bus_at,
            )
            if exclusive_count[k] > 0:
                finished[completed] = exclusive_queue[k, 0]
                completed += 1
                exclusive_count[k] -= 1
                for n in range(exclusive_count[k]):
                    exclusive_queue[k, n] = exclusive_queue[k, n + 1]
            else:
                kept = 0
                for n in range(sharing_count[k]):
                    a = sharing[k, n]
                    if left[a] <= tolerance * speed[a]:
                        finished[completed] = a
                        completed += 1
                    else:
                        sharing[k, kept] = a
                        kept += 1
                sharing_count[k] = kept
            _renew(
                k, now, exclusive_queue, exclusive_count, sharing, sharing_count, ratio, left,
                speed, order, bus_at, bus_next,
            )  # fmt: skip

        for n in range(completed):
            a = finished[n]
            count += 1
            if done_runs[a] == 0:
                task_ends[ends_at[a] + task[a] - first[a]] = now
            task[a] += 1
            if task[a] < first[a] + length[a]:
                ready[a] = now + gap[task[a]]
                continue
            done = done_runs[a]
            if done == ends.shape[1]:
                more = np.empty((tenants, 2 * done))
                more[:, :done] = ends
                ends = more
                again = np.empty((tenants, 2 * done))
                again[:, :done] = latencies
                latencies = again
            ends[a, done] = now
            latencies[a, done] = now - began[a]
            done += 1
            done_runs[a] = done
            if done == runs[a]:
                open_tenants -= 1
                continue
            began[a] = now
            if arrivals_at[a + 1] > arrivals_at[a]:
                began[a] = arrivals[arrivals_at[a] + done]
            task[a] = first[a]
            ready[a] = max(now, began[a]) + gap[first[a]]

        if completed > 0 or next_ready <= now + tolerance:
            next_ready = np.inf
            for a in range(tenants):
                if ready[a] > now + tolerance:
                    next_ready = min(next_ready, ready[a])
                    continue
                ready[a] = np.inf
                i = task[a]
                if kind[i] == 0:
                    queue[queued] = a
                    queued += 1
                    if mode != CONCURRENT:
                        left[a] = seconds[i]
                        if queued == 2:
                            slice_left = slice_seconds
                        continue
                    dispatch = True
                    waiting[a] = chunks[i]
                    resident[a] = settled[a] = 0
                    head[a] = groups[a] = 0
                    next_end[a] = np.inf
                    chunk_pes[a], chunk_work[a] = size[i], work[i]
                    clock_of[a] = partition[a] * classes + klass[i]
                    if most[a] < LIMIT:
                        most_chunks[a] = max(1, int((most[a] + 1e-9) / size[i]))
                    continue
                k = 1 if kind[i] == 2 and links == 2 else 0
                _settle(
                    k, now, exclusive_queue, exclusive_count, sharing, sharing_count, left, speed,
                    bus_at,
                )  # fmt: skip
                left[a], ratio[a] = seconds[i], link[i]
                if exclusive[i]:
                    exclusive_queue[k, exclusive_count[k]] = a
                    exclusive_count[k] += 1
                else:
                    sharing[k, sharing_count[k]] = a
                    sharing_count[k] += 1
                _renew(
                    k, now, exclusive_queue, exclusive_count, sharing, sharing_count, ratio, left,
                    speed, order, bus_at, bus_next,
                )  # fmt: skip

        if dispatch:  # free PEs to the oldest kernel with chunks left, then to the next
            blocked = 0
            for q in range(queued):
                a = queue[q]
                pool = partition[a]
                if waiting[a] == 0 or ((blocked >> pool) & 1) == 1:
                    continue
                mine = most_chunks[a] - resident[a]
                started = min(waiting[a], int((free[pool] + 1e-9) / chunk_pes[a]), mine)
                if started > 0:
                    waiting[a] -= started
                    resident[a] += started
                    free[pool] -= started * chunk_pes[a]
                    _start(
                        a, started, clocks[clock_of[a]], chunk_work[a], merge, mask, ring_end,
                        ring_chunks, head, groups, next_end,
                    )  # fmt: skip
                if waiting[a] > 0 and mine > started:
                    blocked |= 1 << pool  # the head waits for PEs, and everyone behind it
                    if pools == 1:
                        break
        if kinds > 0 and (dispatch or renewed):
            changed = renewed
            for q in range(queued):
                a = queue[q]
                changed = changed or resident[a] != settled[a]
                settled[a] = resident[a]
            if changed:
                loads[:, :] = 0.0
                for q in range(queued):
                    a = queue[q]
                    pool = partition[a]
                    pes = min(pool_pes[pool], float(resident[a]))
                    for r in range(kinds):
                        loads[pool, r] += needs[task[a], r] * pes
                for pool in range(pools):
                    for c in range(classes):
                        most_stretched = 1.0
                        for r in range(kinds):
                            if users[c, r]:
                                full = loads[pool, r] / pool_capacity[pool, r]
                                most_stretched = max(most_stretched, full)
                        stretch[pool * classes + c] = most_stretched
    return ends, latencies, done_runs, task_ends, count
