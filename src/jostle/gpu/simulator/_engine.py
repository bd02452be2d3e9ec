"""The loop of the simulator, for numba.

Source: Prophet (ASPLOS 2017), Sec. 5 and 6. Tests hold it to a plain simulator, the definition, to 1e-9.
Completions come first, then submissions in the order of tenants and lanes. Every lane of a tenant has at most
one task in flight, so all state stands in one row of a table by lane; that of runs stands in the first lane.
What makes it fast, none of it an approximation:
- All kernels of a partition that use the same resources are stretched alike, so each such class has a
  clock of its own, on which the end of a group of chunks never moves.
- The chunks of a kernel all take the same time on that clock, so its groups end in the order in which they
  started: a ring for each lane, of which only the head can be next.
- The oldest kernel with chunks left (the leader) takes back every PE that it frees. As long as nothing else
  happens, its groups repeat, and whole rounds of them are one step.
- A link is touched when something on it begins or ends, and not in between.
- A phase that took an array of each column would count references to each at every event, which costs more
  than the phase. It takes tables, and writes them on every path (no early `return`, no array that one branch
  alone uses), so that numba leaves the counting out; what is touched at every event is `inline`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.gpu.applications._application_tasks import KERNEL, TO_HOST
from jostle.gpu.simulator._tenants import TOLERANCE

try:
    from numba import njit
except ImportError:  # the core alone: as it stands, in plain Python

    def njit(**options: Any) -> Any:
        return lambda function: function


LIMIT = 1 << 60


def _table(fields: list[tuple[str, str]]) -> np.dtype:  # columns are attributes, in Python too
    return np.dtype((np.record, np.dtype(fields, align=True)))


# after: the task of its application that it waits for in another lane, NO_TASK for none. klass: of kernels
# that use the same resources. The rest as in DeviceTasks.
TASK = _table(
    [
        *(("kind", "i8"), ("gap", "f8"), ("seconds", "f8"), ("chunks", "i8"), ("size", "f8")),
        *(("work", "f8"), ("exclusive", "i8"), ("link", "f8"), ("klass", "i8"), ("after", "i8")),
    ]
)
LANE = _table(
    [
        # Its kernel. waiting, resident: chunks. settled: resident when stretches were last computed. most
        # chunks at a time. pes, work: of a chunk. clock: of its class. ring, groups: first group of chunks
        # that end together, and how many. next_end: of the first, on the clock.
        *(
            ("next_end", "f8"),
            ("clock", "u4"),
            ("waiting", "i8"),
            ("resident", "i8"),
            ("settled", "i8"),
        ),
        *(("ring", "i8"), ("groups", "i8"), ("work", "f8"), ("pes", "f8"), ("most_chunks", "i8")),
        # Its transfer, or its kernel where they take turns. left: s. ratio: of the link that it fills alone.
        # speed: relative to alone.
        *(("left", "f8"), ("ratio", "f8"), ("speed", "f8")),
        # task: the row of the one at hand. ready: s at which it begins. held: whether it waits for another
        # lane. began: s, done: runs of its tenant, unfinished: lanes of the run at hand. end: where the end
        # of its first task stands.
        *(("task", "u4"), ("ready", "f8"), ("held", "i8"), ("began", "f8"), ("done", "i8")),
        *(("unfinished", "i8"), ("end", "i8")),
        # As it is given. base: where the tasks of its application stand among all; first, length: its own.
        # runs: -1 for again and again. arrival, arrivals: where they stand among all, and how many. most:
        # PEs. head, lanes: the first lane of its tenant and how many that has.
        *(("base", "i8"), ("first", "i8"), ("length", "i8"), ("start", "f8"), ("runs", "i8")),
        *(("arrival", "i8"), ("arrivals", "i8"), ("partition", "u4"), ("most", "f8")),
        *(("head", "u4"), ("lanes", "i8")),
    ]
)
_GROUP = _table([("end", "f8"), ("chunks", "i8")])  # of chunks; end: on its class's clock
# A class of kernels in a partition. clock: passes more slowly by its stretch.
_CLASS = _table([("clock", "f8"), ("stretch", "f8")])
POOL = _table([("pes", "f8"), ("free", "f8")])
# A link. exclusive, sharing: how many transfers wait or move there. touched: when `left` and `speed` of its
# transfers were last put right. next_end: of the first of them to end.
_LINK = _table([("exclusive", "i8"), ("sharing", "i8"), ("touched", "f8"), ("next_end", "f8")])
EXCLUSIVE, SHARING, ORDER = 0, 1, 2  # the two queues of a link, and room to sort in


@njit(cache=True, nogil=True, error_model="numpy")
def run(
    tasks,
    needs,
    users,
    lanes,
    arrivals,
    pools,
    capacity,
    slice_seconds,
    link_count,
    is_concurrent,
    until,
):
    """Simulate until all runs have ended, or until `until`. Returns (for each run, in the order in which they
    ended, the first lane of its tenant, the end and the latency; ends of the tasks of all first runs; how
    many tasks were simulated). tasks: (n,) TASK of all applications. needs: (n, R). users: (classes, R) bool.
    lanes: (t,) LANE. arrivals: s of all. pools: (pools,) POOL. capacity: (pools, R). link_count: 1 or 2.
    until: s."""
    classes: Any = np.zeros(len(pools) * len(users), _CLASS)
    classes["stretch"][:] = 1.0
    groups: Any = np.empty((len(lanes), _deepest(tasks, pools)), _GROUP)
    links: Any = np.zeros(2, _LINK)
    links["next_end"][:] = np.inf
    queues = np.empty((2, 3, len(lanes)), np.uint32)
    queue, finished = np.empty(len(lanes), np.uint32), np.empty(len(lanes), np.uint32)
    of_runs, ends, latencies = [], [], []
    runs_left = _begin(lanes, tasks, arrivals)
    task_ends = np.full(lanes[-1].end + lanes[-1].length, np.nan)
    resources = np.stack((capacity, np.zeros_like(capacity)))
    next_ready = lanes["ready"].min()
    now, slice_left, queued, count = 0.0, np.inf, 0, 0
    while runs_left > 0:
        following = min(next_ready, links[0].next_end, links[1].next_end)
        change, leader = np.inf, len(lanes)
        if is_concurrent:
            own, change, leader = _next_groups(lanes, classes, queue, queued)
            if leader < len(lanes) and len(pools) == 1:
                lane = lanes[leader]
                if lane.waiting >= lane.resident > 0 and lane.work > 0.0:
                    least = min(change, following - now)
                    own = _repeat(lane, groups, leader, classes[lane.clock], least)
            change = min(change, own)
        elif queued > 0:
            change = min(lanes[queue[0]].left, slice_left)
        then = max(now, min(now + change, following))
        if then > until:
            break
        passed, now, tolerance = then - now, then, TOLERANCE * then
        has_free = renewed = False  # whether free PEs may find a taker; whether a kernel has left
        completed = 0
        if is_concurrent:
            if queued > 0:
                for c in range(len(classes)):
                    classes[c].clock += passed / classes[c].stretch
            if change <= passed + tolerance:
                has_free, completed = _end_groups(
                    lanes, groups, classes, pools, queue, queued, tolerance, finished
                )
                queued -= completed
                renewed = completed > 0
        elif queued > 0:
            slice_left -= passed
            completed, slice_left = _take_turns(
                lanes, queue, queued, passed, slice_left, slice_seconds, tolerance, finished
            )
            queued -= completed
        for k in range(link_count):
            if links[k].next_end <= now + tolerance:
                _settle(lanes, links, queues, k, now)
                completed += _leave(lanes, links, queues, k, tolerance, finished, completed)
                _renew(lanes, links, queues, k, now)

        for n in range(completed):
            lane = lanes[finished[n]]
            if lanes[lane.head].done == 0:
                task_ends[lane.end + lane.task - lane.first] = now
            if _ends_run(lanes, tasks, finished[n], now):
                head = lanes[lane.head]
                of_runs.append(np.int64(lane.head))
                ends.append(now)
                latencies.append(now - head.began)
                head.done += 1
                if head.done == head.runs:
                    runs_left -= 1
                else:
                    _begin_run(lanes, tasks, arrivals, lane.head, now)
        count += completed

        if completed > 0 or next_ready <= now + tolerance:
            next_ready, kernels = np.inf, queued
            for a in range(len(lanes)):
                lane = lanes[a]
                if lane.ready > now + tolerance:
                    next_ready = min(next_ready, lane.ready)
                    continue
                lane.ready = np.inf
                task = tasks[lane.task]
                if task.kind == KERNEL:
                    queue[queued] = a
                    queued += 1
                    _queue_kernel(lane, task, len(users))
                    continue
                k = 1 if task.kind == TO_HOST and link_count == 2 else 0
                _settle(lanes, links, queues, k, now)
                _enter(lanes, links, queues, k, a, task)
                _renew(lanes, links, queues, k, now)
            has_free = has_free or queued > kernels
            if kernels < 2 <= queued:
                slice_left = slice_seconds
        if has_free and is_concurrent:
            _dispatch(lanes, groups, classes, pools, queue, queued)
        if needs.shape[1] > 0 and is_concurrent and (has_free or renewed):
            for q in range(queued):
                lane = lanes[queue[q]]
                renewed = renewed or lane.resident != lane.settled
                lane.settled = lane.resident
            if renewed:
                _stretch(lanes, classes, pools, queue, queued, needs, users, resources)
    return np.array(of_runs), np.array(ends), np.array(latencies), task_ends, count


@njit(cache=True, nogil=True)
def _deepest(tasks, pools):
    """Compute a power of two above the number of groups that a kernel can have."""
    smallest, deep = 1.0, 2
    for i in range(len(tasks)):
        if tasks[i].kind == KERNEL:
            smallest = min(smallest, tasks[i].size)
    while deep < pools["pes"].max() / smallest + 2:
        deep *= 2
    return deep


@njit(cache=True, nogil=True)
def _begin(lanes, tasks, arrivals):
    """Begin all first runs. Returns how many tenants do a fixed number of runs."""
    runs_left, end = 0, 0
    for a in range(len(lanes)):
        lane = lanes[a]
        lane.end = end
        end += lane.length
        lane.most_chunks = LIMIT
        if lane.head == a:
            runs_left += lane.runs >= 0
            _begin_run(lanes, tasks, arrivals, a, lane.start)
    return runs_left


@njit(inline="always")
def _next_groups(lanes, classes, queue, queued):
    """Compute (s to the end of the next group of the leader, of the others, the leader)."""
    own, change, leader = np.inf, np.inf, len(lanes)
    for q in range(queued):
        lane = lanes[queue[q]]
        remains = (lane.next_end - classes[lane.clock].clock) * classes[lane.clock].stretch
        if leader == len(lanes) and lane.waiting > 0:
            leader, own = queue[q], remains
        else:
            change = min(change, remains)
    return own, change, leader


@njit(inline="always")
def _repeat(lane, groups, leader, of_class, least):
    """Whole rounds of the leader's groups that end within `least` s; returns s to the end of the next."""
    mask = groups.shape[1] - 1
    each = lane.work * of_class.stretch
    last = groups[leader, (lane.ring + lane.groups - 1) & mask].end
    spare = least - (last - of_class.clock) * of_class.stretch
    rounds = lane.waiting // lane.resident
    if spare < each * rounds:
        rounds = int(max(spare, 0.0) / each)
    lane.waiting -= rounds * lane.resident
    for g in range(lane.ring, lane.ring + (lane.groups if rounds > 0 else 0)):
        groups[leader, g & mask].end += rounds * lane.work
    lane.next_end = groups[leader, lane.ring & mask].end
    return (lane.next_end - of_class.clock) * of_class.stretch


@njit(inline="always")
def _start(lane, groups, a, number, clock):
    """`number` chunks begin, a group of their own."""
    mask = groups.shape[1] - 1
    last = groups[a, (lane.ring + lane.groups) & mask]
    last.end = clock + lane.work
    last.chunks = number
    lane.groups += 1
    lane.next_end = groups[a, lane.ring & mask].end


@njit(inline="always")
def _end_groups(lanes, groups, classes, pools, queue, queued, tolerance, finished):
    """End groups that are due. Returns (whether PEs are free, how many kernels moved to `finished`)."""
    mask, has_free, has_leader, kept, completed = groups.shape[1] - 1, False, False, 0, 0
    for q in range(queued):
        a = queue[q]
        lane = lanes[a]
        leads = lane.waiting > 0 and not has_leader
        has_leader = has_leader or leads
        of_class = classes[lane.clock]
        while (lane.next_end - of_class.clock) * of_class.stretch <= tolerance:
            number = groups[a, lane.ring & mask].chunks
            lane.ring += 1
            lane.groups -= 1
            if leads and lane.waiting >= number:
                lane.waiting -= number
                _start(lane, groups, a, number, of_class.clock)
                continue
            has_free = True
            lane.resident -= number
            pools[lane.partition].free += number * lane.pes
            lane.next_end = groups[a, lane.ring & mask].end if lane.groups > 0 else np.inf
        finished[completed] = queue[kept] = a
        is_done = lane.waiting == 0 and lane.resident == 0
        completed += is_done
        kept += not is_done
    return has_free, completed


@njit(inline="always")
def _take_turns(lanes, queue, queued, passed, slice_left, slice_seconds, tolerance, finished):
    """Take passed time off the kernel in turn. Returns (kernels done, 0 or 1, s left of the slice)."""
    first = queue[0]
    lanes[first].left -= passed
    is_done = lanes[first].left <= tolerance
    is_over = is_done or slice_left <= tolerance
    for q in range(queued - 1 if is_over else 0):
        queue[q] = queue[q + 1]
    finished[0] = queue[queued - 1 if is_over else 0] = first
    if is_over:
        slice_left = slice_seconds if queued > 1 + is_done else np.inf
    return int(is_done), slice_left


@njit(inline="always")
def _queue_kernel(lane, task, classes):
    lane.left = task.seconds
    lane.waiting = task.chunks
    lane.resident = lane.settled = lane.ring = lane.groups = 0
    lane.next_end = np.inf
    lane.pes, lane.work = task.size, task.work
    lane.clock = lane.partition * classes + task.klass
    if lane.most < LIMIT:
        lane.most_chunks = max(1, int((lane.most + 1e-9) / task.size))


@njit(inline="always")
def _dispatch(lanes, groups, classes, pools, queue, queued):
    """Free PEs to the oldest kernel with chunks left, then to the next."""
    blocked = 0
    for q in range(queued):
        a = queue[q]
        lane = lanes[a]
        pool = pools[lane.partition]
        if lane.waiting == 0 or ((blocked >> lane.partition) & 1) == 1:
            continue
        mine = lane.most_chunks - lane.resident
        started = min(lane.waiting, int((pool.free + 1e-9) / lane.pes), mine)
        if started > 0:
            lane.waiting -= started
            lane.resident += started
            pool.free -= started * lane.pes
            _start(lane, groups, a, started, classes[lane.clock].clock)
        if lane.waiting > 0 and mine > started:
            blocked |= 1 << lane.partition  # the head waits for PEs, and everyone behind it
            if len(pools) == 1:
                break


@njit(inline="always")
def _stretch(lanes, classes, pools, queue, queued, needs, users, resources):
    """Compute how much slower each class runs: load over capacity of the most used resource that it uses."""
    capacity, loads = 0, 1
    for pool in range(len(pools)):
        for r in range(needs.shape[1]):
            resources[loads, pool, r] = 0.0
    for q in range(queued):
        lane = lanes[queue[q]]
        pes = min(pools[lane.partition].pes, float(lane.resident))
        for r in range(needs.shape[1]):
            resources[loads, lane.partition, r] += needs[lane.task, r] * pes
    for pool in range(len(pools)):
        for c in range(len(users)):
            most = 1.0
            for r in range(needs.shape[1]):
                if users[c, r]:
                    most = max(most, resources[loads, pool, r] / resources[capacity, pool, r])
            classes[pool * len(users) + c].stretch = most


@njit(cache=True, nogil=True, error_model="numpy")
def _renew(lanes, links, queues, k, now):
    """Set the speeds on a link from now on, and when the next transfer there ends: exclusive ones go one by
    one at full speed, the others share max-min fairly, none faster than alone."""
    link = links[k]
    link.touched = now
    if link.exclusive > 0:
        link.next_end = now + lanes[queues[k, EXCLUSIVE, 0]].left
        return
    for n in range(link.sharing):  # insertion by link ratio, stable
        place, a = n, queues[k, SHARING, n]
        while place > 0 and lanes[queues[k, ORDER, place - 1]].ratio > lanes[a].ratio:
            queues[k, ORDER, place] = queues[k, ORDER, place - 1]
            place -= 1
        queues[k, ORDER, place] = a
    room, waiting, soonest = 1.0, link.sharing, np.inf
    for n in range(link.sharing):
        lane = lanes[queues[k, ORDER, n]]
        given = min(lane.ratio, room / waiting)
        lane.speed = given / lane.ratio
        room -= given
        waiting -= 1
        soonest = min(soonest, lane.left / lane.speed)
    link.next_end = now + soonest


@njit(inline="always")
def _settle(lanes, links, queues, k, now):
    """Take off what moved on a link since it was last touched."""
    link = links[k]
    passed = now - link.touched
    if link.exclusive > 0:
        lanes[queues[k, EXCLUSIVE, 0]].left -= passed
    else:
        for n in range(link.sharing):
            lane = lanes[queues[k, SHARING, n]]
            lane.left -= passed * lane.speed


@njit(inline="always")
def _enter(lanes, links, queues, k, a, task):
    link = links[k]
    lanes[a].left, lanes[a].ratio = task.seconds, task.link
    if task.exclusive:
        queues[k, EXCLUSIVE, link.exclusive] = a
        link.exclusive += 1
    else:
        queues[k, SHARING, link.sharing] = a
        link.sharing += 1


@njit(inline="always")
def _leave(lanes, links, queues, k, tolerance, finished, at):
    """Transfers on a settled link that are done leave it and stand in `finished`; returns how many."""
    link, count, kept = links[k], 0, 0
    alone = link.exclusive > 0
    which, number = (EXCLUSIVE, link.exclusive) if alone else (SHARING, link.sharing)
    for n in range(number):
        a = queues[k, which, n]
        finished[at + count] = queues[k, which, kept] = a
        is_done = n == 0 if alone else lanes[a].left <= tolerance * lanes[a].speed
        count += is_done
        kept += not is_done
    if alone:
        link.exclusive = kept
    else:
        link.sharing = kept
    return count


@njit(inline="always")
def _must_wait(lanes, tasks, a):
    """True if the task that the one at hand waits for has not ended in the run at hand."""
    after = tasks[lanes[a].task].after
    if after < 0:
        return False
    after += lanes[a].base
    head = lanes[a].head
    for b in range(head, head + lanes[head].lanes):
        lane = lanes[b]
        if lane.first <= after < lane.first + lane.length:
            return lane.task <= after
    return False


@njit(inline="always")
def _ends_run(lanes, tasks, a, now):
    """End the task at hand: begin the next in its lane, and what waited for it. Returns if all ended."""
    lane = lanes[a]
    lane.task += 1
    if lane.task < lane.first + lane.length:
        lane.held = _must_wait(lanes, tasks, a)
        if not lane.held:
            lane.ready = now + tasks[lane.task].gap
    else:
        lanes[lane.head].unfinished -= 1
    for b in range(lane.head, lane.head + lane.lanes):
        other = lanes[b]
        if other.held and not _must_wait(lanes, tasks, b):
            other.held = False
            other.ready = now + tasks[other.task].gap
    return lanes[lane.head].unfinished == 0


@njit(inline="always")
def _begin_run(lanes, tasks, arrivals, head, now):
    """Begin the next run of a tenant that may begin from now on: all its lanes stand at their first tasks."""
    lane = lanes[head]
    lane.began = since = now
    if lane.arrivals > 0:
        lane.began = arrivals[lane.arrival + lane.done]
        since = max(now, lane.began)
    lane.unfinished = lane.lanes
    for b in range(head, head + lane.lanes):
        lanes[b].task = lanes[b].first
    for b in range(head, head + lane.lanes):
        other = lanes[b]
        other.held = _must_wait(lanes, tasks, b)
        other.ready = np.inf if other.held else since + tasks[other.task].gap
