/* Text: n letters compressed by a greedy LZ77 (hash of four letters, matches of 4 to 255) and decompressed again.
   The result is the number of tokens (u32) and the restored text. */
#include "kernel.h"

#define BITS 12
#define LEAST 4
#define MOST 255

static u32 n, *token, *last;
static u8 *text, *restored;

EXPORT(setup) void setup(u32 size) {
    n = size;
    text = take(n), token = take(n * 4), last = take(4 << BITS);
    u8 *both = take(4 + n);
    restored = both + 4;
    /* Words from a small vocabulary, so that there is something to find. */
    for (u32 i = 0; i < n; i++) text[i] = 'a' + mix(mix(i / 8) % 64 * 8 + i % 8) % 26;
    publish(both, 4 + n);
}

static inline u32 hash(const u8 *at) {
    u32 word = at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24;
    return word * 2654435761u >> (32 - BITS);
}

static u32 compress(void) {
    u32 tokens = 0;
    for (u32 i = 0; i < 1 << BITS; i++) last[i] = ~0u;
    for (u32 at = 0; at < n;) {
        u32 length = 0, from = ~0u;
        if (at + LEAST <= n) {
            u32 key = hash(text + at);
            from = last[key], last[key] = at;
            if (from != ~0u && at - from < 65536)
                while (length < MOST && at + length < n && text[from + length] == text[at + length]) length++;
        }
        if (length >= LEAST)
            token[tokens++] = (at - from) << 16 | length << 8 | 1, at += length;
        else
            token[tokens++] = (u32)text[at] << 8, at++;
    }
    return tokens;
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        u32 tokens = compress(), at = 0;
        *(u32 *)(restored - 4) = tokens;
        for (u32 i = 0; i < tokens; i++) {
            if (!(token[i] & 1)) {
                restored[at++] = token[i] >> 8;
                continue;
            }
            u32 length = token[i] >> 8 & 255, apart = token[i] >> 16;
            for (u32 k = 0; k < length; k++, at++) restored[at] = restored[at - apart];
        }
    }
}
