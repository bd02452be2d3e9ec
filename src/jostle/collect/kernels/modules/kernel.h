/* What every kernel shares. A kernel is freestanding C (no libc, no imports), so its .wasm runs on any engine.

   It exports setup(n): takes memory and fills it, deterministically, from the size n;
   run(reps): repeats the same work, each repetition executing exactly the same instructions;
   result(), result_bytes(): where the last output lies; checksum(): 64-bit FNV-1a of it. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef double f64;

#define EXPORT(name) __attribute__((export_name(#name)))
#define PAGE 65536u

static u8 *output;
static u32 output_bytes;

extern u8 __heap_base;
static u32 heap_top;

/* Fresh zeroed memory on a cache line; traps when the engine gives none. Never given back. */
static void *take(u32 bytes) {
    u32 begin = ((heap_top ? heap_top : (u32)&__heap_base) + 63u) & ~63u;
    u32 end = begin + bytes, have = __builtin_wasm_memory_size(0) * PAGE;
    if (end < begin) __builtin_trap();
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (u32)-1)
        __builtin_trap();
    heap_top = end;
    return (void *)begin;
}

/* A stateless integer hash (lowbias32): input i of a kernel is mix(i), so an oracle can make it too. */
static inline u32 mix(u32 x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

static inline f64 unit(u32 i) { return mix(i) * 0x1p-32; }

static inline void publish(void *where, u32 bytes) { output = where, output_bytes = bytes; }

EXPORT(result) u32 result(void) { return (u32)output; }
EXPORT(result_bytes) u32 result_bytes(void) { return output_bytes; }

EXPORT(checksum) u64 checksum(void) {
    u64 hash = 0xcbf29ce484222325ull;
    for (u32 i = 0; i < output_bytes; i++) hash = (hash ^ output[i]) * 0x100000001b3ull;
    return hash;
}
