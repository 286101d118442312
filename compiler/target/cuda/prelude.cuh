/* What the text of every model's kernels begins with: the words that they are written in. NVRTC
 * needs no header for it. The emulator of tests/cuda, which runs the same text on a CPU, defines
 * GRADC_EMULATED and brings CUDA's own words. All of it gives the bits of the exact interpreter
 * (kernel/interp_alu.c), if compiled with --fmad=false --ftz=false. */
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
#ifdef __CUDACC_RTC__
#pragma nv_diag_suppress 177 /* what a model has no use for */
#pragma nv_diag_suppress 39  /* what a model divides by 0 */
#pragma nv_diag_suppress 186 /* u8 below 0 */
#endif
#define DEVICE    static __device__ __forceinline__
#define INFINITE  __int_as_float(0x7f800000)
#define NO_NUMBER __int_as_float(0x7fc00000)
#ifndef GRADC_EMULATED
#define SHARED(type, name, dims) __shared__ __align__(16) type name dims /* 16: float4 */
#endif

/* ---- halves: floats in registers, 16 bits in memory; to nearest, ties to even -------------- */

DEVICE float bf16_value(u16 bits)
{
    return __int_as_float((int)((u32)bits << 16));
}

DEVICE u16 bf16_bits(float x)
{
    const u32 u = (u32)__float_as_int(x);
    if (x != x)
        return (u16)(u >> 16 | 0x40);
    return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#ifdef __CUDA_ARCH__
DEVICE float f16_value(u16 bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

DEVICE u16 f16_bits(float x)
{
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#else
DEVICE float f16_value(u16 bits)
{
    const u32 sign = (u32)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, part = bits & 0x3ff;
    if (exponent == 31)
        return __int_as_float((int)(sign | 0x7f800000 | part << 13));
    if (exponent != 0)
        return __int_as_float((int)(sign | (exponent + 112) << 23 | part << 13));
    return __int_as_float((int)(sign | (u32)__float_as_int((float)part * 5.9604644775390625e-8f)));
}

/* v shifted right by 1 to 31, to nearest even. */
DEVICE u32 shift_even(u32 v, u32 by)
{
    const u32 half = 1u << (by - 1), q = v >> by, rest = v & (2 * half - 1);
    return q + (rest > half || (rest == half && (q & 1)));
}

DEVICE u16 f16_bits(float x)
{
    const u32 u = (u32)__float_as_int(x), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
    u32 r = 0;
    if (size > 0x7f800000)
        r = 0x7e00;
    else if (size >= 0x47800000) /* 2^16 and more */
        r = 0x7c00;
    else if (size >= 0x38800000) /* normal */
        r = shift_even(size - (112u << 23), 13);
    else if (size >= 0x33000000) /* 2^-25 and more */
        r = shift_even((size & 0x7fffff) | 0x800000, 126 - (size >> 23));
    return (u16)(sign | r);
}
#endif

DEVICE float bf16_round(float x)
{
    return bf16_value(bf16_bits(x));
}

DEVICE float f16_round(float x)
{
    return f16_value(f16_bits(x));
}

/* ---- integers: they wrap; x/0 = 0 ------------------------------------------------------------ */

DEVICE int add(int x, int y) { return (int)((u32)x + (u32)y); }
DEVICE i64 add(i64 x, i64 y) { return (i64)((u64)x + (u64)y); }
DEVICE u8 add(u8 x, u8 y) { return (u8)(x + y); }
DEVICE float add(float x, float y) { return x + y; }
DEVICE double add(double x, double y) { return x + y; }

DEVICE int sub(int x, int y) { return (int)((u32)x - (u32)y); }
DEVICE i64 sub(i64 x, i64 y) { return (i64)((u64)x - (u64)y); }
DEVICE u8 sub(u8 x, u8 y) { return (u8)(x - y); }

DEVICE int mul(int x, int y) { return (int)((u32)x * (u32)y); }
DEVICE i64 mul(i64 x, i64 y) { return (i64)((u64)x * (u64)y); }
DEVICE u8 mul(u8 x, u8 y) { return (u8)(x * y); }
DEVICE float mul(float x, float y) { return x * y; }
DEVICE double mul(double x, double y) { return x * y; }

/* High half of the unsigned product. */
DEVICE int mulhi(int x, int y) { return (int)((u64)(u32)x * (u32)y >> 32); }

DEVICE int quotient(int x, int y) { return y == 0 ? 0 : y == -1 ? sub(0, x) : x / y; }
DEVICE i64 quotient(i64 x, i64 y) { return y == 0 ? 0 : y == -1 ? sub(0ll, x) : x / y; }
DEVICE u8 quotient(u8 x, u8 y) { return y == 0 ? (u8)0 : (u8)(x / y); }

DEVICE int remains(int x, int y) { return y == 0 || y == -1 ? 0 : x % y; }
DEVICE i64 remains(i64 x, i64 y) { return y == 0 || y == -1 ? 0 : x % y; }
DEVICE u8 remains(u8 x, u8 y) { return y == 0 ? (u8)0 : (u8)(x % y); }

DEVICE int absolute(int x) { return x < 0 ? sub(0, x) : x; }
DEVICE i64 absolute(i64 x) { return x < 0 ? sub(0ll, x) : x; }
DEVICE u8 absolute(u8 x) { return x; }

DEVICE int shift_left(int x, int by) { return (int)((u32)x << (by & 31)); }
DEVICE i64 shift_left(i64 x, i64 by) { return (i64)((u64)x << (by & 63)); }

DEVICE int shift_right(int x, int by) { return (int)((u32)x >> (by & 31)); }
DEVICE i64 shift_right(i64 x, i64 by) { return (i64)((u64)x >> (by & 63)); }

DEVICE int shift_signed(int x, int by) { return x >> (by & 31); }
DEVICE i64 shift_signed(i64 x, i64 by) { return x >> (by & 63); }

/* lo <= e < hi */
DEVICE bool within(int e, int lo, int hi) { return lo <= e && e < hi; }
DEVICE bool within(i64 e, i64 lo, i64 hi) { return lo <= e && e < hi; }

/* ---- floats to integers: towards zero, saturated, NaN gives 0 -------------------------------- */

DEVICE int to_i32(float x)
{
    return x != x               ? 0
           : x <= -2147483648.f ? -2147483647 - 1
           : x >= 2147483648.f  ? 2147483647
                                : (int)x;
}

DEVICE int to_i32(double x)
{
    return x != x              ? 0
           : x <= -2147483648. ? -2147483647 - 1
           : x >= 2147483647.  ? 2147483647
                               : (int)x;
}

DEVICE i64 to_i64(double x)
{
    const i64 most = 9223372036854775807ll;
    return x != x                       ? 0
           : x < -9223372036854775808.  ? -most - 1
           : x >= 9223372036854775808. ? most
                                        : (i64)x;
}

DEVICE u8 to_u8(double x)
{
    return x != x || x <= 0 ? (u8)0 : x >= 255 ? (u8)255 : (u8)x;
}

/* ---- accumulators ---------------------------------------------------------------------------- */

struct Add {
    template <class T> DEVICE T of(T x, T y) { return add(x, y); }
};
struct Mul {
    template <class T> DEVICE T of(T x, T y) { return mul(x, y); }
};
struct Min {
    template <class T> DEVICE T of(T x, T y) { return x < y ? x : y; }
};
struct Max {
    template <class T> DEVICE T of(T x, T y) { return x > y ? x : y; }
};
struct And {
    DEVICE bool of(bool x, bool y) { return x && y; }
};
struct Or {
    DEVICE bool of(bool x, bool y) { return x || y; }
};

/* The tree of virtual lanes: lane[l] = op(lane[l], lane[l + w]) for w = N/2 ... 1. */
template <class Op, int N, class T> DEVICE T fold(const T (&from)[N])
{
    T lane[N / 2];
#pragma unroll
    for (int l = 0; l < N / 2; l++)
        lane[l] = Op::of(from[l], from[l + N / 2]);
#pragma unroll
    for (int w = N / 4; w >= 1; w /= 2)
#pragma unroll
        for (int l = 0; l < w; l++)
            lane[l] = Op::of(lane[l], lane[l + w]);
    return lane[0];
}

/* x of the thread `by` above in the team, and of its first one. */
template <int W, class T> DEVICE T from_above(u32 members, T x, int by)
{
    return __shfl_down_sync(members, x, by, W);
}
template <int W> DEVICE bool from_above(u32 members, bool x, int by)
{
    return __shfl_down_sync(members, (int)x, by, W) != 0;
}
template <int W> DEVICE u8 from_above(u32 members, u8 x, int by)
{
    return (u8)__shfl_down_sync(members, (int)x, by, W);
}
template <int W, class T> DEVICE T from_first(u32 members, T x)
{
    return __shfl_sync(members, x, 0, W);
}
template <int W> DEVICE bool from_first(u32 members, bool x)
{
    return __shfl_sync(members, (int)x, 0, W) != 0;
}
template <int W> DEVICE u8 from_first(u32 members, u8 x)
{
    return (u8)__shfl_sync(members, (int)x, 0, W);
}

/* The same tree where thread t of a team of W has lane t, for all of its threads. */
template <class Op, int W, class T> DEVICE T team_fold(u32 members, T x)
{
#pragma unroll
    for (int w = W / 2; w >= 1; w /= 2)
        x = Op::of(x, from_above<W>(members, x, w));
    return from_first<W>(members, x);
}

/* Where it has lanes t, t + W, ... */
template <class Op, int W, int N, class T> DEVICE T team_fold(u32 members, const T (&lane)[N])
{
    return team_fold<Op, W>(members, fold<Op>(lane));
}

template <int N, class T> DEVICE void fill(T (&lane)[N], T x)
{
#pragma unroll
    for (int l = 0; l < N; l++)
        lane[l] = x;
}

/* ---- contractions ---------------------------------------------------------------------------- */

DEVICE float fused(float x, float y, float z) { return fmaf(x, y, z); }
DEVICE double fused(double x, double y, double z) { return fma(x, y, z); }

/* One k of the chains of a thread: M elements of a's panel by N of b's. */
template <int M, int N, class T> DEVICE void multiply(T (&chain)[M][N], const T *a, const T *b)
{
    T x[M], y[N];
#pragma unroll
    for (int row = 0; row < M; row++)
        x[row] = a[row];
#pragma unroll
    for (int col = 0; col < N; col++)
        y[col] = b[col];
#pragma unroll
    for (int row = 0; row < M; row++)
#pragma unroll
        for (int col = 0; col < N; col++)
            chain[row][col] = fused(x[row], y[col], chain[row][col]);
}

/* The first leaf is the sum; others are added to it. */
template <int M, int N, class T> DEVICE void end_leaf(T (&sum)[M][N], T (&leaf)[M][N], bool first)
{
#pragma unroll
    for (int row = 0; row < M; row++)
#pragma unroll
        for (int col = 0; col < N; col++) {
            sum[row][col] = first ? leaf[row][col] : sum[row][col] + leaf[row][col];
            leaf[row][col] = 0;
        }
}
