/* One form of MaxSim's inner loop, for vectors of LANES numbers in the instructions of TARGET. Included by kernel.c
   once for each form, which defines NAME, LANES and TARGET. TOKENS query tokens are compared at once. */

#define PARTS (TOKENS / LANES)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define floats JOIN(floats_, NAME)
#define masks JOIN(masks_, NAME)

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t masks __attribute__((vector_size(4 * LANES)));

#define HIGHER(a, b)                                                                                                \
    ({                                                                                                              \
        floats one_ = (a), other_ = (b);                                                                            \
        masks more_ = one_ > other_;                                                                                \
        (floats)(((masks)one_ & more_) | ((masks)other_ & ~more_));                                                 \
    })

/* For each of the `owners` the highest similarity of any of its tokens with each query token, into `said`; inside
   questions, at least 0, into `asked`. `query` has `tokens` <= TOKENS rows of `dimension` numbers; the rows of the
   results have `stride` numbers. `table` has room for 2 * width * 16 * TOKENS numbers, aligned to 64 bytes. */
TARGET static void NAME(
    const float *query, int64_t tokens, int64_t dimension, int64_t stride, const uint8_t *bits, int64_t width,
    const uint8_t *questions, const int64_t *starts, const int64_t *lengths, int64_t owners, float scale, float worth,
    float *table, float *said, float *asked)
{
    const floats zero = {0};
    const floats low = zero + LOWEST;
    floats *sums_of = (floats *)table, sums[PARTS];
    for (int k = 0; k < PARTS; k++)
        sums[k] = zero;
    /* For every four dimensions the sums of the query over each of the sixteen choices of them. */
    for (int64_t p = 0; p < 2 * width; p++) {
        floats *here = sums_of + p * 16 * PARTS, column[4][PARTS];
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < PARTS; k++) {
                int64_t d = 4 * p + b;
                floats one = zero;
                for (int j = 0; j < LANES; j++)
                    if (d < dimension && LANES * k + j < tokens)
                        one[j] = query[(LANES * k + j) * dimension + d];
                column[b][k] = one;
                sums[k] += one;
            }
        for (int k = 0; k < PARTS; k++)
            here[k] = zero;
        for (int v = 1; v < 16; v++)
            for (int k = 0; k < PARTS; k++)
                here[v * PARTS + k] = here[(v & (v - 1)) * PARTS + k] + column[3 - __builtin_ctz(v)][k];
    }
    for (int64_t o = 0; o < owners; o++) {
        floats best[PARTS], inside[PARTS];
        const uint8_t *row = bits + starts[o] * width, *question = questions + starts[o];
        for (int k = 0; k < PARTS; k++)
            best[k] = inside[k] = low;
        for (int64_t t = 0; t < lengths[o]; t++) {
            floats even[PARTS], odd[PARTS];
            const floats *at = sums_of;
            for (int k = 0; k < PARTS; k++)
                even[k] = odd[k] = zero;
            for (int64_t i = 0; i < width; i++, row++, at += 32 * PARTS) {
                const floats *high = at + (*row >> 4) * PARTS, *rest = at + (16 + (*row & 15)) * PARTS;
                for (int k = 0; k < PARTS; k++) {
                    even[k] += high[k];
                    odd[k] += rest[k];
                }
            }
            for (int k = 0; k < PARTS; k++) {
                floats similar = (2 * (even[k] + odd[k]) - sums[k]) * scale;
                best[k] = HIGHER(best[k], question[t] ? similar * worth : similar);
                inside[k] = HIGHER(inside[k], question[t] ? similar : zero);
            }
        }
        for (int64_t j = 0; j < tokens; j++) {
            said[o * stride + j] = best[j / LANES][j % LANES];
            asked[o * stride + j] = inside[j / LANES][j % LANES];
        }
    }
}

#undef PARTS
#undef floats
#undef masks
#undef HIGHER
#undef JOIN
#undef JOIN_
#undef NAME
#undef LANES
#undef TARGET
