/* Spectral: radix-2 complex FFT of n doubles (n a power of two), real parts first, then imaginary. */
#include "kernel.h"

static u32 n;
static f64 *source, *re, *im, *cosine, *sine;

/* Taylor series, for |x| <= pi/4 good to the last bit or two: there is no libm here. */
static void turn(f64 x, f64 *c, f64 *s) {
    f64 term = 1, cos_sum = 1, sin_sum = 0;
    for (u32 k = 1; k < 24; k += 2) {
        term *= x / k, sin_sum += term;
        term *= -x / (k + 1), cos_sum += term;
    }
    *c = cos_sum, *s = sin_sum;
}

EXPORT(setup) void setup(u32 size) {
    n = size;
    source = take(n * 16), re = take(n * 16), im = re + n;
    cosine = take(n * 4), sine = take(n * 4);
    for (u32 i = 0; i < 2 * n; i++) source[i] = unit(i) - 0.5;
    for (u32 i = 0; i < n / 2; i++) {
        /* The angle -2 pi i/n lies in (-pi, 0]: turn an eighth of it, then double three times. */
        f64 c, s;
        turn(-0.78539816339744830962 * i / n, &c, &s);
        for (u32 twice = 0; twice < 3; twice++) {
            f64 c2 = c * c - s * s;
            s = 2 * c * s, c = c2;
        }
        cosine[i] = c, sine[i] = s;
    }
    publish(re, n * 16);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 0, reversed = 0; i < n; i++) {
            re[reversed] = source[i], im[reversed] = source[n + i];
            u32 bit = n >> 1;
            while (bit && (reversed & bit)) reversed ^= bit, bit >>= 1;
            reversed |= bit;
        }
        for (u32 half = 1; half < n; half <<= 1) {
            u32 step = n / (2 * half);
            for (u32 base = 0; base < n; base += 2 * half)
                for (u32 k = 0; k < half; k++) {
                    u32 low = base + k, high = low + half;
                    f64 c = cosine[k * step], s = sine[k * step];
                    f64 x = re[high] * c - im[high] * s, y = re[high] * s + im[high] * c;
                    re[high] = re[low] - x, im[high] = im[low] - y;
                    re[low] += x, im[low] += y;
                }
        }
    }
}
