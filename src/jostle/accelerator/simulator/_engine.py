"""The loop of the compiled simulator: the reference's events and models in one function for numba.

It follows `_reference` and the facilities of the built-in models event by event; property tests hold both to
1e-9. Every lane of a tenant has at most one task in flight, so that all state stands in arrays by lane; a
lane is what stands below for a tenant, but for runs, which all lanes of one tenant begin and end together.
What makes it fast, none of it an approximation:

- All kernels of a partition that use the same resources are stretched alike, so each such class has a
  clock of its own, on which the end of a group of chunks never moves.
- The chunks of a kernel all take the same time on that clock, so its groups end in the order in which they
  started: a ring for each tenant, of which only the head can be next.
- The oldest kernel with chunks left (the leader) takes back every PE that it frees. As long as nothing else
  happens, its groups repeat, and whole rounds of them are one step.
- A link is touched when something on it begins or ends, and not in between.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from jostle.accelerator.applications._tasks import KERNEL, TO_HOST
from jostle.accelerator.simulator._tenants import TOLERANCE

CONCURRENT, SEQUENTIAL, SLICED = 0, 1, 2
LIMIT = 1 << 60


class TenantTable(NamedTuple):
    """t lanes. first, length: (t,) where their tasks stand among all. start: (t,) s. runs: (t,), -1 for
    again and again. arrivals: s, those of lane a from arrivals_at[a]. partition: (t,). most: (t,) PEs.
    head, lanes: (t,) the first lane of its tenant and how many that has; runs stand there.
    after: (n,) the task of another lane that each task waits for, NO_TASK for none.
    """

    first: np.ndarray
    length: np.ndarray
    start: np.ndarray
    runs: np.ndarray
    arrivals: np.ndarray
    arrivals_at: np.ndarray
    partition: np.ndarray
    most: np.ndarray
    head: np.ndarray
    lanes: np.ndarray
    after: np.ndarray


class KernelClasses(NamedTuple):
    """Kernels that use the same resources. users: (classes, R) bool. of_task: (n,) the class of each task."""

    users: np.ndarray
    of_task: np.ndarray


class Pools(NamedTuple):
    """pes: (pools,). capacity: (pools, R). slice_seconds: of the time-sliced model. links: 1 or 2."""

    pes: np.ndarray
    capacity: np.ndarray
    slice_seconds: float
    links: int


# A group of chunks that end together. end: on the clock of its class.
_GROUP = np.dtype([("end", "f8"), ("chunks", "i8")])
# The groups of a tenant in a ring of a power of two. head: the first. groups: how many. next_end: of
# the first.
_RING = np.dtype([("head", "i8"), ("groups", "i8"), ("next_end", "f8")])
# A transfer by tenant. ratio: of the link that it fills alone. speed: relative to alone. left: s.
_TRANSFER = np.dtype([("ratio", "f8"), ("speed", "f8"), ("left", "f8")])
# A link. exclusive, sharing: how many transfers wait or move there. touched: when `left` and `speed` of its
# transfers were last put right. next_end: of the first of them to end.
_LINK = np.dtype([("exclusive", "i8"), ("sharing", "i8"), ("touched", "f8"), ("next_end", "f8")])
EXCLUSIVE, SHARING = 0, 1  # the two queues of a link


@njit(inline="always")
def _start(ring, groups, number, clock, work, merge):
    """`number` chunks begin: a group of their own, or part of the one before."""
    end = clock + work
    mask = len(groups) - 1
    last = groups[(ring.head + ring.groups - 1) & mask]
    # Only the last group can be near: an earlier one was too far when the last began.
    if merge > 0.0 and ring.groups > 0 and end - last.end <= merge * work:
        both = last.chunks + number
        mean = (last.chunks * (last.end - clock) + number * work) / both
        last.end = clock + mean
        last.chunks = both
    else:
        last = groups[(ring.head + ring.groups) & mask]
        last.end = end
        last.chunks = number
        ring.groups += 1
    ring.next_end = groups[ring.head & mask].end


@njit(cache=True, nogil=True, error_model="numpy")
def _renew(link, queues, transfers, order, now):
    """The speeds on a link from now on, and when the next transfer there ends: exclusive ones go one by
    one at full speed, the others share max-min fairly, none faster than alone. order: room to sort in."""
    link.touched = now
    if link.exclusive > 0:
        link.next_end = now + transfers[queues[EXCLUSIVE, 0]].left
        return
    count = link.sharing
    for n in range(count):  # insertion by link ratio, stable
        place, a = n, queues[SHARING, n]
        while place > 0 and transfers[order[place - 1]].ratio > transfers[a].ratio:
            order[place] = order[place - 1]
            place -= 1
        order[place] = a
    room, waiting, soonest = 1.0, count, np.inf
    for n in range(count):
        transfer = transfers[order[n]]
        given = min(transfer.ratio, room / waiting)
        transfer.speed = given / transfer.ratio
        room -= given
        waiting -= 1
        soonest = min(soonest, transfer.left / transfer.speed)
    link.next_end = now + soonest


@njit(inline="always")
def _settle(link, queues, transfers, now):
    """What moved on a link since it was last touched."""
    passed = now - link.touched
    if link.exclusive > 0:
        transfers[queues[EXCLUSIVE, 0]].left -= passed
    else:
        for n in range(link.sharing):
            transfer = transfers[queues[SHARING, n]]
            transfer.left -= passed * transfer.speed


@njit(inline="always")
def _leave(link, queues, transfers, tolerance, ended):
    """Transfers on a settled link that are done leave it and stand in `ended`; returns how many."""
    count = kept = 0
    if link.exclusive > 0:
        ended[0] = queues[EXCLUSIVE, 0]
        link.exclusive -= 1
        for n in range(link.exclusive):
            queues[EXCLUSIVE, n] = queues[EXCLUSIVE, n + 1]
        return 1
    for n in range(link.sharing):
        a = queues[SHARING, n]
        if transfers[a].left <= tolerance * transfers[a].speed:
            ended[count] = a
            count += 1
        else:
            queues[SHARING, kept] = a
            kept += 1
    link.sharing = kept
    return count


@njit(inline="always")
def _must_wait(i, a, task, tenant_table):
    """Whether the task that task i of lane a waits for has not ended in the run at hand."""
    after = tenant_table.after[i]
    if after < 0:
        return False
    head = tenant_table.head[a]
    for b in range(head, head + tenant_table.lanes[head]):
        begin = tenant_table.first[b]
        if begin <= after < begin + tenant_table.length[b]:
            return task[b] <= after
    return False


@njit(inline="always")
def _begin_run(head, since, task, ready, held, tenant_table, gap):
    """All lanes of a tenant stand at their first tasks, which may begin from `since` on."""
    end = head + tenant_table.lanes[head]
    for b in range(head, end):
        task[b] = tenant_table.first[b]
    for b in range(head, end):
        i = task[b]
        held[b] = _must_wait(i, b, task, tenant_table)
        ready[b] = np.inf if held[b] else since + gap[i]


@njit(cache=True, nogil=True, error_model="numpy")
def run(tasks, kernel_classes, tenant_table, pool_table, mode, merge, until_seconds):
    """(ends and latencies of runs, (tenants, room) each, how many each tenant did, ends of the tasks of
    all first runs, how many tasks were simulated). tasks: DeviceTasks of all applications, one after the
    other."""
    kind, gap, seconds, chunks, size, work, needs, exclusive, link = tasks
    users, klass = kernel_classes
    first, length, start, runs, arrivals, arrivals_at, partition, most, head, lanes, _ = (
        tenant_table
    )
    pool_pes, pool_capacity, slice_seconds, link_count = pool_table
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
    held = np.zeros(tenants, np.bool_)  # the lane waits for another one
    unfinished = np.zeros(tenants, np.int64)  # lanes of the run at hand, by head
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
        if kind[i] == KERNEL:
            smallest = min(smallest, size[i])
    deep = 2
    while deep < pool_pes.max() / smallest + 2:
        deep *= 2
    mask = deep - 1
    groups: Any = np.empty((tenants, deep), _GROUP)
    rings: Any = np.zeros(tenants, _RING)
    slice_left = np.inf
    links: Any = np.zeros(2, _LINK)
    links["next_end"][:] = np.inf
    queues = np.empty((2, 2, tenants), np.uint32)
    transfers: Any = np.zeros(tenants, _TRANSFER)
    order = np.empty(tenants, np.uint32)

    open_tenants = 0
    for a in range(tenants):
        if head[a] != a:
            continue
        open_tenants += runs[a] >= 0
        began[a] = start[a]
        if arrivals_at[a + 1] > arrivals_at[a]:
            began[a] = arrivals[arrivals_at[a]]
        unfinished[a] = lanes[a]
        _begin_run(a, max(start[a], began[a]), task, ready, held, tenant_table, gap)
    next_ready = ready.min()

    now, count = 0.0, 0
    while open_tenants > 0:
        until = min(next_ready, links[0].next_end, links[1].next_end)
        change = np.inf
        leader = tenants
        if mode == CONCURRENT:
            own = np.inf
            for q in range(queued):
                a = queue[q]
                c = clock_of[a]
                remains = (rings[a].next_end - clocks[c]) * stretch[c]
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
                    ring = rings[a]
                    last = groups[a, (ring.head + ring.groups - 1) & mask].end
                    spare = min(change, until - now) - (last - clocks[c]) * stretch[c]
                    gap_round = ring.next_end + chunk_work[a] - last
                    if spare >= each and gap_round > merge * chunk_work[a]:
                        rounds = waiting[a] // resident[a]
                        if spare < each * rounds:
                            rounds = int(spare / each)
                        waiting[a] -= rounds * resident[a]
                        for g in range(ring.head, ring.head + ring.groups):
                            groups[a, g & mask].end += rounds * chunk_work[a]
                        ring.next_end = groups[a, ring.head & mask].end
                        own = (ring.next_end - clocks[c]) * stretch[c]
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
                    ring = rings[a]
                    while (ring.next_end - clocks[c]) * stretch[c] <= tolerance:
                        number = groups[a, ring.head & mask].chunks
                        ring.head += 1
                        ring.groups -= 1
                        if a == leader and waiting[a] >= number:
                            waiting[a] -= number
                            _start(ring, groups[a], number, clocks[c], chunk_work[a], merge)
                            continue
                        dispatch = True
                        resident[a] -= number
                        free[partition[a]] += number * chunk_pes[a]
                        ring.next_end = np.inf
                        if ring.groups > 0:
                            ring.next_end = groups[a, ring.head & mask].end
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
        for k in range(link_count):
            if links[k].next_end <= now + tolerance:
                _settle(links[k], queues[k], transfers, now)
                completed += _leave(links[k], queues[k], transfers, tolerance, finished[completed:])
                _renew(links[k], queues[k], transfers, order, now)

        for n in range(completed):
            a = finished[n]
            h = head[a]
            count += 1
            if done_runs[h] == 0:
                task_ends[ends_at[a] + task[a] - first[a]] = now
            task[a] += 1
            if task[a] < first[a] + length[a]:
                held[a] = _must_wait(task[a], a, task, tenant_table)
                if not held[a]:
                    ready[a] = now + gap[task[a]]
            else:
                unfinished[h] -= 1
            for b in range(h, h + lanes[h]):
                if held[b] and not _must_wait(task[b], b, task, tenant_table):
                    held[b] = False
                    ready[b] = now + gap[task[b]]
            if unfinished[h] > 0:
                continue
            done = done_runs[h]
            if done == ends.shape[1]:
                more = np.empty((tenants, 2 * done))
                more[:, :done] = ends
                ends = more
                again = np.empty((tenants, 2 * done))
                again[:, :done] = latencies
                latencies = again
            ends[h, done] = now
            latencies[h, done] = now - began[h]
            done += 1
            done_runs[h] = done
            if done == runs[h]:
                open_tenants -= 1
                continue
            began[h] = now
            if arrivals_at[h + 1] > arrivals_at[h]:
                began[h] = arrivals[arrivals_at[h] + done]
            unfinished[h] = lanes[h]
            _begin_run(h, max(now, began[h]), task, ready, held, tenant_table, gap)

        if completed > 0 or next_ready <= now + tolerance:
            next_ready = np.inf
            for a in range(tenants):
                if ready[a] > now + tolerance:
                    next_ready = min(next_ready, ready[a])
                    continue
                ready[a] = np.inf
                i = task[a]
                if kind[i] == KERNEL:
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
                    rings[a].head = rings[a].groups = 0
                    rings[a].next_end = np.inf
                    chunk_pes[a], chunk_work[a] = size[i], work[i]
                    clock_of[a] = partition[a] * classes + klass[i]
                    if most[a] < LIMIT:
                        most_chunks[a] = max(1, int((most[a] + 1e-9) / size[i]))
                    continue
                k = 1 if kind[i] == TO_HOST and link_count == 2 else 0
                _settle(links[k], queues[k], transfers, now)
                transfers[a].left, transfers[a].ratio = seconds[i], link[i]
                if exclusive[i]:
                    queues[k, EXCLUSIVE, links[k].exclusive] = a
                    links[k].exclusive += 1
                else:
                    queues[k, SHARING, links[k].sharing] = a
                    links[k].sharing += 1
                _renew(links[k], queues[k], transfers, order, now)

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
                    clock = clocks[clock_of[a]]
                    _start(rings[a], groups[a], started, clock, chunk_work[a], merge)
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
