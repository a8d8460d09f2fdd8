/* What this machine can do at best, by plain C loops: cc -O3 -march=native -fopenmp limits.c -o limits; ./limits THREADS
   Prints JSON: the rate of float32 fused multiply-adds in registers, of a copy of 256 MiB (bytes read and written),
   and of rows at random places of a table of 1 GiB copied one after the other, with prefetch (bytes of rows). */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
typedef float vec __attribute__((vector_size(WIDTH)));
enum { CHAINS = 12, LANES = WIDTH / 4, AHEAD = 8 };

static double peak(int threads) {
    const long steps = 2000000;
    double best = 0;
    for (int run = 0; run < 15; run++) {
        float sum = 0;
        double t = omp_get_wtime();
#pragma omp parallel reduction(+ : sum)
        {
            vec a[CHAINS], x, y;
            for (int i = 0; i < LANES; i++) x[i] = .999f, y[i] = 1e-3f;
            for (int c = 0; c < CHAINS; c++)
                for (int i = 0; i < LANES; i++) a[c][i] = c;
            for (long k = 0; k < steps; k++) {
#pragma GCC unroll 12
                for (int c = 0; c < CHAINS; c++) a[c] = a[c] * x + y;
#if WIDTH >= 32
                __asm__ volatile("" : "+v"(x));
#endif
            }
            for (int c = 0; c < CHAINS; c++) sum += a[c][0];
        }
        t = omp_get_wtime() - t;
        double rate = 2e-9 * CHAINS * LANES * steps * threads / t;
        if (rate > best) best = rate;
        if (sum == 1) puts("");
    }
    return best;
}

static double copy(void) {
    const long n = 256L << 20, piece = 1 << 20;
    char *src = malloc(n), *dst = malloc(n);
    double best = 0;
    for (int run = 0; run < 9; run++) { /* the first runs also touch the pages */
        double t = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i += piece) {
            if (run == 0) memset(src + i, 1, piece);
            memcpy(dst + i, src + i, piece);
        }
        double rate = 2e-9 * n / (omp_get_wtime() - t);
        if (run > 1 && rate > best) best = rate;
    }
    free(src), free(dst);
    return best;
}

static double rows(long bytes) {
    const long table = 1L << 30, picked = (64L << 20) / bytes, all = table / bytes;
    char *t = malloc(table), *out = malloc(picked * bytes);
    int32_t *id = malloc(picked * 4);
    uint64_t s = 88172645463325252u;
    double best = 0;
    memset(t, 1, table), memset(out, 0, picked * bytes);
    for (long i = 0; i < picked; i++) s ^= s << 13, s ^= s >> 7, s ^= s << 17, id[i] = s % all;
    for (int run = 0; run < 9; run++) {
        double w = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < picked; i++) {
            if (i + AHEAD < picked)
                for (long q = 0; q < bytes; q += 64) __builtin_prefetch(t + id[i + AHEAD] * bytes + q);
            memcpy(out + i * bytes, t + id[i] * bytes, bytes);
        }
        double rate = 1e-9 * picked * bytes / (omp_get_wtime() - w);
        if (rate > best) best = rate;
    }
    free(t), free(out), free(id);
    return best;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    omp_set_num_threads(threads);
    printf("{\"threads\": %d, \"vector_bytes\": %d, \"peak_gflops\": %.1f, \"copy_gb_per_second\": %.2f, \"random_row_gb_per_second\": "
           "{\"64\": %.2f, \"400\": %.2f, \"512\": %.2f, \"1024\": %.2f}}\n",
           threads, WIDTH, peak(threads), copy(), rows(64), rows(400), rows(512), rows(1024));
}
