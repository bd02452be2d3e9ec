"""An independent, slow, obviously right simulator: explicit PEs, small steps of time, no events.

It shares no code with the package: it reads the tasks as they were written down, on one partition, with
packed blocks, one resource called memory.
"""

from __future__ import annotations

import math

from jostle.accelerator import Application, Device


def solo_batch_seconds(task, device: Device) -> float:
    """A PE-filling chunk's own time, such that the task alone takes task.seconds."""
    chunks = math.ceil(task.blocks / (device.warps_per_pe // task.warps_per_block))
    need, limit, total = task.needs.get("memory", 0), device.resources.get("memory", math.inf), 0.0
    while chunks > 0:
        batch = min(chunks, device.pes)
        total += max(1.0, need * batch / limit)
        chunks -= batch
    return task.seconds / total


def step_through(
    applications: list[Application], device: Device, step: float, sharing: str = "concurrent"
) -> list[list[float]]:
    """The end of every task of every application, each run once from time 0."""
    ends: list[list[float]] = [[] for _ in applications]
    due = [app.tasks[0].gap_seconds for app in applications]
    flying: dict[int, dict] = {}
    pes: list[dict | None] = [None] * device.pes  # what runs on each
    kernel_order: list[int] = []
    transfers: list[int] = []  # in the order of submission
    tick = 0
    while any(len(done) < len(app.tasks) for done, app in zip(ends, applications, strict=True)):
        now = tick * step
        for a, app in enumerate(applications):
            if a not in flying and len(ends[a]) < len(app.tasks) and due[a] <= now + step / 2:
                task = app.tasks[len(ends[a])]
                flying[a] = {"task": task, "left": task.seconds}
                if task.kind == "kernel":
                    per_pe = device.warps_per_pe // task.warps_per_block
                    flying[a]["waiting"] = math.ceil((task.blocks or 0) / per_pe)
                    flying[a]["running"] = 0
                    kernel_order.append(a)
                else:
                    transfers.append(a)
        if sharing == "concurrent":
            for a in kernel_order:
                job = flying[a]
                for p in range(device.pes):
                    if pes[p] is None and job["waiting"]:
                        job["waiting"] -= 1
                        job["running"] += 1
                        pes[p] = {"of": a, "left": solo_batch_seconds(job["task"], device)}
            demand = sum(flying[pe["of"]]["task"].needs.get("memory", 0) for pe in pes if pe)
            slow = max(1.0, demand / device.resources.get("memory", math.inf))
            for p, pe in enumerate(pes):
                if pe:
                    uses = flying[pe["of"]]["task"].needs.get("memory", 0) > 0
                    pe["left"] -= step / (slow if uses else 1.0)
                    if pe["left"] <= step * 1e-6:
                        pes[p] = None
                        flying[pe["of"]]["running"] -= 1
            over = [
                a for a in kernel_order if not flying[a]["waiting"] and not flying[a]["running"]
            ]
        else:
            over = []
            if kernel_order:
                flying[kernel_order[0]]["left"] -= step
                if flying[kernel_order[0]]["left"] <= step * 1e-6:
                    over = kernel_order[:1]
        links = [transfers]
        if device.bus == "per_direction":
            links = [
                [a for a in transfers if flying[a]["task"].kind == kind]
                for kind in ("htod", "dtoh")
            ]
        for link in links:
            first = [a for a in link if flying[a]["task"].exclusive][:1]
            if first:
                flying[first[0]]["left"] -= step
            else:
                # Water is poured in equal drops until all are full or the link is.
                given, room, thirsty = dict.fromkeys(link, 0.0), 1.0, set(link)
                while thirsty and room > 1e-12:
                    drop = min(
                        room / len(thirsty),
                        min(flying[a]["task"].link_ratio - given[a] for a in thirsty),
                    )
                    for a in thirsty:
                        given[a] += drop
                    room -= drop * len(thirsty)
                    thirsty = {
                        a for a in thirsty if flying[a]["task"].link_ratio - given[a] > 1e-12
                    }
                for a in link:
                    flying[a]["left"] -= step * given[a] / flying[a]["task"].link_ratio
        over += [a for a in transfers if flying[a]["left"] <= step * 1e-6]
        tick += 1
        for a in over:
            (kernel_order if a in kernel_order else transfers).remove(a)
            del flying[a]
            ends[a].append(tick * step)
            if len(ends[a]) < len(applications[a].tasks):
                due[a] = tick * step + applications[a].tasks[len(ends[a])].gap_seconds
    return ends
