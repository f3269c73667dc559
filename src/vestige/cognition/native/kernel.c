/* The inner loops of a search (ADR 0040). `kernel.py` calls them; the same in numpy is in cognition/ranking. There is
   no call of a library here, so that one file serves every C library of a platform. */

#include <stdint.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* Raised with INTERFACE in kernel.py. */
EXPORTED int32_t vestige_interface(void)
{
    return 1;
}

#define TOKENS 16
#define LOWEST -9.0f

/* -- MaxSim over sign bits (cognition/ranking/maxsim.py) */

#define NAME by_four
#define LANES 4
#define TARGET
#include "maxsim.h"

#if defined(__x86_64__)
#define NAME by_eight
#define LANES 8
#define TARGET __attribute__((target("avx2")))
#include "maxsim.h"

#define NAME by_sixteen
#define LANES 16
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl")))
#include "maxsim.h"
#endif

#if defined(__x86_64__)
/* Which vector registers the operating system saves: bits 1 and 2 are those of AVX, 5 to 7 those of AVX-512. */
static uint32_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#endif

/* How many numbers this processor adds at once: 4, 8 or 16. Asked here and not by __builtin_cpu_supports, which needs
   a part of the compiler's library that not every compiler can link into a shared library. */
EXPORTED int32_t vestige_lanes(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
        return 4;
    uint32_t saved = saved_registers();
    if ((saved & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
        return 4;
    uint32_t wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL;
    return (saved & 0xe0) == 0xe0 && (b & wanted) == wanted ? 16 : 8;
#else
    return 4;
#endif
}

/* See NAME in maxsim.h; any number of query tokens, by the instructions for `lanes`. */
EXPORTED void vestige_maxsim(
    int32_t lanes, const float *query, int64_t tokens, int64_t dimension, const uint8_t *bits, int64_t width,
    const uint8_t *questions, const int64_t *starts, const int64_t *lengths, int64_t owners, float scale, float worth,
    float *table, float *said, float *asked)
{
    (void)lanes;
    for (int64_t from = 0; from < tokens; from += TOKENS) {
        int64_t some = tokens - from < TOKENS ? tokens - from : TOKENS;
        const float *rows = query + from * dimension;
#if defined(__x86_64__)
        if (lanes == 16)
            by_sixteen(rows, some, dimension, tokens, bits, width, questions, starts, lengths, owners, scale, worth,
                       table, said + from, asked + from);
        else if (lanes == 8)
            by_eight(rows, some, dimension, tokens, bits, width, questions, starts, lengths, owners, scale, worth,
                     table, said + from, asked + from);
        else
#endif
            by_four(rows, some, dimension, tokens, bits, width, questions, starts, lengths, owners, scale, worth,
                    table, said + from, asked + from);
    }
}

/* The similarity of each candidate, alone and with its neighbours, for each of several weightings of the query's
   tokens. `around` has `columns` owners for each candidate, the first is itself, -1 for none. A neighbour's part counts
   by `reach`, its questions by `answers`, both by column; 0 for not at all. */
EXPORTED void vestige_context(
    const float *said, const float *asked, int64_t tokens, const int64_t *around, int64_t candidates, int64_t columns,
    const float *reach, const float *answers, const double *weights, int64_t weightings, double *own, double *context)
{
    for (int64_t i = 0; i < candidates; i++) {
        const int64_t *here = around + i * columns;
        for (int64_t w = 0; w < weightings; w++)
            own[w * candidates + i] = context[w * candidates + i] = here[0] < 0 ? __builtin_nan("") : 0.0;
        if (here[0] < 0)
            continue;
        for (int64_t j = 0; j < tokens; j++) {
            float alone = said[here[0] * tokens + j], best = alone;
            for (int64_t c = 1; c < columns; c++) {
                if (here[c] < 0)
                    continue;
                float there = reach[c] * said[here[c] * tokens + j];
                best = there > best ? there : best;
                if (answers[c] > 0) {
                    there = answers[c] * asked[here[c] * tokens + j];
                    best = there > best ? there : best;
                }
            }
            for (int64_t w = 0; w < weightings; w++) {
                own[w * candidates + i] += weights[w * tokens + j] * (double)alone;
                context[w * candidates + i] += weights[w * tokens + j] * (double)best;
            }
        }
    }
}

/* -- BM25 (cognition/ranking/bm25.py). Entries come in the order of their terms. */

/* The rows that have an entry, or a neighbour with one, or are in `also`, ascending; their number. `slots` has a 0 for
   each of `size` rows, and gets 1 + the place of each found one. */
EXPORTED int64_t vestige_rows(
    const int64_t *rows, int64_t entries, const int64_t *before, const int64_t *after, const int64_t *also,
    int64_t more, int64_t size, int32_t *slots, int64_t *found)
{
    for (int64_t i = 0; i < entries; i++) {
        int64_t row = rows[i];
        slots[row] = 1;
        if (before[row] >= 0)
            slots[before[row]] = 1;
        if (after[row] >= 0)
            slots[after[row]] = 1;
    }
    for (int64_t i = 0; i < more; i++)
        slots[also[i]] = 1;
    int64_t count = 0;
    for (int64_t row = 0; row < size; row++)
        if (slots[row]) {
            found[count] = row;
            slots[row] = (int32_t)++count;
        }
    return count;
}

/* Add a count to a cell of `table`; the number of distinct cells that were met so far. */
static inline int64_t add(int32_t *table, int64_t place, int64_t count, int64_t *places, int64_t met)
{
    if (!table[place])
        places[met++] = place;
    table[place] += (int32_t)count;
    return met;
}

/* Record the counts of the cells from `start` to `met`, and empty them; `met`. */
static inline int64_t taken(int32_t *table, int64_t *places, int64_t *counts, int64_t *terms, int64_t term,
                            int64_t start, int64_t met)
{
    for (int64_t i = start; i < met; i++) {
        counts[i] = table[places[i]];
        terms[i] = term;
        table[places[i]] = 0;
    }
    return met;
}

/* The entries of the windows: each row's and its neighbours' together, one for each term and place; their number.
   `table` has a 0 for each place. */
EXPORTED int64_t vestige_windows(
    const int64_t *terms, const int64_t *rows, const int64_t *counts, int64_t entries, const int64_t *before,
    const int64_t *after, const int32_t *slots, int32_t *table, int64_t *held_terms, int64_t *held_places,
    int64_t *held_counts)
{
    int64_t met = 0, start = 0;
    for (int64_t i = 0; i < entries; i++) {
        int64_t row = rows[i];
        met = add(table, slots[row] - 1, counts[i], held_places, met);
        if (before[row] >= 0)
            met = add(table, slots[before[row]] - 1, counts[i], held_places, met);
        if (after[row] >= 0)
            met = add(table, slots[after[row]] - 1, counts[i], held_places, met);
        if (i + 1 == entries || terms[i + 1] != terms[i])
            start = taken(table, held_places, held_counts, held_terms, terms[i], start, met);
    }
    return met;
}

/* The entries of threads, one for each term and thread; their number. `table` has a 0 for each thread. */
EXPORTED int64_t vestige_threads(
    const int64_t *terms, const int64_t *rows, const int64_t *counts, int64_t entries, const int64_t *threads,
    int32_t *table, int64_t *held_terms, int64_t *held_places, int64_t *held_counts)
{
    int64_t met = 0, start = 0;
    for (int64_t i = 0; i < entries; i++) {
        if (threads[rows[i]] >= 0)
            met = add(table, threads[rows[i]], counts[i], held_places, met);
        if (i + 1 == entries || terms[i + 1] != terms[i])
            start = taken(table, held_places, held_counts, held_terms, terms[i], start, met);
    }
    return met;
}

/* The norm of each row by its own terms and by those of its window, with the average number of each. */
EXPORTED void vestige_norms(
    const int64_t *rows, int64_t count, const int64_t *lengths, const int64_t *before, const int64_t *after, double k1,
    double b, double own_average, double window_average, double *own, double *window)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows[i], alone = lengths[row], all = alone;
        if (before[row] >= 0)
            all += lengths[before[row]];
        if (after[row] >= 0)
            all += lengths[after[row]];
        own[i] = k1 * (1 - b + b * (double)alone / own_average);
        window[i] = k1 * (1 - b + b * (double)all / window_average);
    }
}

/* Add to `scores` what each entry is worth. An entry's place is in `places`, by `slots` (less 1) if there are any. */
EXPORTED void vestige_scores(
    const int64_t *terms, const int64_t *places, const int64_t *counts, int64_t entries, const int32_t *slots,
    const double *factors, const double *norms, double *scores)
{
    for (int64_t i = 0; i < entries; i++) {
        int64_t place = slots ? slots[places[i]] - 1 : places[i];
        double count = (double)counts[i];
        scores[place] += factors[terms[i]] * count / (count + norms[place]);
    }
}
