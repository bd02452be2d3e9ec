/* Sorting: quicksort (middle pivot, explicit stack, insertion sort below 16) of n 32-bit numbers. */
#include "kernel.h"

static u32 n, *source, *v;

EXPORT(setup) void setup(u32 size) {
    n = size;
    source = take(n * 4), v = take(n * 4);
    for (u32 i = 0; i < n; i++) source[i] = mix(i);
    publish(v, n * 4);
}

static void sort(i32 low, i32 high) {
    i32 stack[64], top = 0;
    for (;;) {
        while (high - low >= 16) {
            u32 pivot = v[(low + high) / 2];
            i32 i = low, j = high;
            while (i <= j) {
                while (v[i] < pivot) i++;
                while (v[j] > pivot) j--;
                if (i <= j) {
                    u32 swap = v[i];
                    v[i++] = v[j], v[j--] = swap;
                }
            }
            /* The larger part waits, so the stack never holds more than log2(n) parts. */
            if (j - low < high - i) {
                stack[top++] = i, stack[top++] = high, high = j;
            } else {
                stack[top++] = low, stack[top++] = j, low = i;
            }
        }
        for (i32 i = low + 1; i <= high; i++) {
            u32 value = v[i];
            i32 j = i - 1;
            for (; j >= low && v[j] > value; j--) v[j + 1] = v[j];
            v[j + 1] = value;
        }
        if (!top) return;
        high = stack[--top], low = stack[--top];
    }
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(v, source, n * 4);
        sort(0, (i32)n - 1);
    }
}
