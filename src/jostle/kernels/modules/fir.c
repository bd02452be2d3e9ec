/* Signals: a finite impulse response filter of 32 taps over n 32-bit integers. */
#include "kernel.h"

#define TAPS 32

static u32 n;
static i32 *signal, *filtered, tap[TAPS];

EXPORT(setup) void setup(u32 size) {
    n = size;
    signal = take((n + TAPS) * 4), filtered = take(n * 4);
    for (u32 i = 0; i < n + TAPS; i++) signal[i] = (i32)(mix(i) >> 16) - 32768;
    for (u32 k = 0; k < TAPS; k++) tap[k] = (i32)(mix(k + 7) >> 24) - 128;
    publish(filtered, n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 i = 0; i < n; i++) {
            i32 sum = 0;
            for (u32 k = 0; k < TAPS; k++) sum += signal[i + k] * tap[k];
            filtered[i] = sum;
        }
}
