/* Dynamic programming: Levenshtein distance of two words of n letters; the result is the table's last row (u32). */
#include "kernel.h"

static u32 n, *row;
static u8 *first, *second;

static inline u32 least(u32 a, u32 b) { return a < b ? a : b; }

EXPORT(setup) void setup(u32 size) {
    n = size;
    first = take(n), second = take(n), row = take(n * 4 + 4);
    for (u32 i = 0; i < n; i++) first[i] = mix(i) & 7, second[i] = mix(i + n) & 7;
    publish(row, n * 4 + 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 j = 0; j <= n; j++) row[j] = j;
        for (u32 i = 1; i <= n; i++) {
            u32 corner = row[0], letter = first[i - 1];
            row[0] = i;
            for (u32 j = 1; j <= n; j++) {
                u32 above = row[j];
                row[j] = least(least(above, row[j - 1]) + 1, corner + (letter != second[j - 1]));
                corner = above;
            }
        }
    }
}
