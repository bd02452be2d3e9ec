/* What a kernel needs when gcc builds it as a shared library: memory below 4 GiB, where an address fits in 32 bits as
   in WebAssembly, and the loop that keeps the beats (see _harness.py). */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#define POOL (768u << 20)
#define STEP (64u << 20)
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void run(uint32_t reps);

static unsigned char *pool;
static uint32_t used;

void *jostle_take(uint32_t bytes) {
    for (uintptr_t at = STEP; !pool && at + POOL < 0xffff0000u; at += STEP) {
        void *got = mmap((void *)at, POOL, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == (void *)at) pool = got;
        else if (got != MAP_FAILED) munmap(got, POOL);
    }
    uint64_t begin = (used + 63u) & ~63u;
    if (!pool || begin + bytes > POOL) __builtin_trap();
    used = begin + bytes;
    return pool + begin;
}

void jostle_release(void) {
    if (pool) munmap(pool, POOL);
    pool = 0, used = 0;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

uint32_t jostle_beats(uint32_t repeats, int64_t until, uint32_t most, int64_t *times) {
    uint32_t count = 0;
    times[0] = now();
    do {
        run(repeats);
        times[++count] = now();
    } while (times[count] < until && count < most);
    return count;
}
