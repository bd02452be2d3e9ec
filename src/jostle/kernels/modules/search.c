/* Text: counts (u32 each) of four eight-letter patterns in n letters out of four, by Horspool's method. */
#include "kernel.h"

#define PATTERNS 4
#define LENGTH 8

static u32 n, *count;
static u8 *text;

EXPORT(setup) void setup(u32 size) {
    n = size;
    text = take(n), count = take(PATTERNS * 4);
    for (u32 i = 0; i < n; i++) text[i] = 'a' + (mix(i) & 3);
    publish(count, PATTERNS * 4);
}

static u32 occurrences(const u8 *pattern) {
    u8 skip[256];
    for (u32 i = 0; i < 256; i++) skip[i] = LENGTH;
    for (u32 i = 0; i + 1 < LENGTH; i++) skip[pattern[i]] = LENGTH - 1 - i;
    u32 found = 0;
    for (u32 at = 0; at + LENGTH <= n; at += skip[text[at + LENGTH - 1]]) {
        u32 k = LENGTH;
        while (k && text[at + k - 1] == pattern[k - 1]) k--;
        found += !k;
    }
    return found;
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        /* The patterns are pieces of the text itself, so each is found at least once. */
        for (u32 p = 0; p < PATTERNS; p++) count[p] = occurrences(text + p * (n / PATTERNS));
}
