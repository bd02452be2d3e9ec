/* Memory latency: 4096 dependent loads along one cycle through n bytes (a power of two), a cache line each. */
#include "kernel.h"

#define LINE 64
#define STEPS 4096

static u32 *position;

EXPORT(setup) void setup(u32 bytes) {
    u32 lines = bytes / LINE;
    u8 *base = take(bytes);
    position = take(4);
    /* i -> a i + c modulo a power of two is one cycle through all lines when a % 4 == 1 and c is odd;
       its steps have no constant stride, so no prefetcher follows. */
    for (u32 i = 0; i < lines; i++) {
        u32 next = (i * 0x9e3779b5u + 0x3c6ef35fu) & (lines - 1);
        *(u32 *)(base + i * LINE) = (u32)base + next * LINE;
    }
    *position = (u32)base;
    publish(position, 4);
}

EXPORT(run) void run(u32 reps) {
    u32 at = *position;
    while (reps--)
        for (u32 step = 0; step < STEPS; step++) at = *(volatile u32 *)at;
    *position = at;
}
