/* Runs CUDA kernels on a CPU: one block after the other, a fiber for each thread of it. The text of
 * the kernels is what NVRTC reads; this header brings CUDA's words, prelude.cuh the rest.
 *
 * What it finds, beside wrong results:
 *   - threads that wait for others that never come; lanes that a shuffle asks and that are not in
 *     it; threads that meet at different barriers;
 *   - what depends on the order of threads or blocks: it runs forwards, backwards and at random;
 *   - shared memory that nobody has written (it is full of NaN) or that another block has;
 *   - with -fsanitize=address, what lies outside of a buffer or of a shared array;
 *   - with -fsanitize=thread, races of a block's threads: only barriers order them.
 *
 * Prior art: fibers for the threads of a block, as in HIP-CPU (AMD). */
#ifndef GRADC_TESTS_CUDA_EMULATOR_HPP
#define GRADC_TESTS_CUDA_EMULATOR_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define UNSEEN __attribute__((no_sanitize("thread"))) /* the emulator itself has no races */
#else
#define UNSEEN
#endif

/* ---- CUDA's words ------------------------------------------------------------------------- */

#define GRADC_EMULATED 1
#define __global__
#define __device__
#define __forceinline__        inline
#define __launch_bounds__(...)
struct uint3 {
    unsigned x, y, z;
};
static uint3 threadIdx, blockIdx;

template <class To, class From> static inline To bits_as(From x)
{
    To y;
    static_assert(sizeof x == sizeof y, "as many bits");
    memcpy(&y, &x, sizeof y);
    return y;
}
#define __float_as_int(x)       bits_as<int>((float)(x))
#define __int_as_float(x)       bits_as<float>((int)(x))
#define __double_as_longlong(x) bits_as<long long>((double)(x))
#define __longlong_as_double(x) bits_as<double>((long long)(x))

namespace emulator {

/* ---- one block ------------------------------------------------------------------------------- */

enum { MAX_THREADS = 1024, WARP = 32, TEAMS = 8, STACK_BYTES = 256 << 10 };
enum { SHARED_BYTES = 48 << 10, SHARED_ROOM = 4 * SHARED_BYTES }; /* of a block; with gaps */
enum Order { FORWARDS, BACKWARDS, RANDOM, N_ORDERS };
enum State { READY, AT_BARRIER, IN_WARP, DONE };

struct Thread {
    void *sp; /* where it was left */
#if !defined(__x86_64__)
    ucontext_t context;
#endif
    char *stack;
    void *fake, *tsan; /* of the sanitizers */
    unsigned index;
    State state;
    int line;          /* where it waits */
    size_t shared_end; /* of the shared arrays that it has declared */
    int n_shared;
};

/* An operation of some lanes of a warp, not all of which have come. */
struct Meeting {
    unsigned mask, came;
    void *operand[WARP];
};

static Thread thread[MAX_THREADS], host, *now = &host;
static Meeting meeting[MAX_THREADS / WARP][TEAMS];
static unsigned n_threads, n_alive, n_waiting;
static unsigned generation; /* of the block's barrier */
static unsigned team_generation[MAX_THREADS]; /* by the first thread of a team in a warp */
/* What the race detector takes for an order: two in turn, so that who is late sees nothing of the
 * next time. */
static char barrier_order[2], team_order[MAX_THREADS][2], block_begin, block_end;
static char *shared_base;
static int shared_known; /* arrays that some thread has declared */
static size_t shared_bytes;
static Order order;
static uint64_t random_state = 1;
static void (*kernel)(void *);
static void *kernel_of;

UNSEEN static uint64_t draw()
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

[[noreturn]] UNSEEN static void give_up(const char *why)
{
    static const char *const name[] = {"ready", "at a barrier", "in a warp's operation", "done"};
    fprintf(stderr, "emulator: %s, in block %u\n", why, blockIdx.x);
    for (unsigned i = 0; i < n_threads; i++)
        if (i == 0 || thread[i].state != thread[i - 1].state ||
            thread[i].line != thread[i - 1].line)
            fprintf(stderr, "  from thread %u on: %s, line %d\n", i, name[thread[i].state],
                    thread[i].line);
    fflush(nullptr);
    _exit(97);
}

/* ---- switching ------------------------------------------------------------------------------- */

#if defined(__x86_64__)
extern "C" void emulator_switch(void **save, void *to);
asm(".text\n"
    ".globl emulator_switch\n"
    ".type emulator_switch, @function\n"
    "emulator_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\n"
    "movq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
    "ret\n"
    ".size emulator_switch, .-emulator_switch\n");
#endif

static const void *host_stack;
static size_t host_bytes;

/* The part of a switch that sanitizers are told of, when it has come back. */
UNSEEN static inline void arrived(void *fake)
{
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (host_stack == nullptr) { /* the first to come from there */
        host_stack = bottom;
        host_bytes = size;
    }
#else
    (void)fake;
#endif
}

UNSEEN static void switch_to(Thread *to)
{
    Thread *from = now;
    if (to == from)
        return;
    now = to;
    threadIdx = {to->index, 0, 0};
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
    if (to == &host)
        __sanitizer_start_switch_fiber(&from->fake, host_stack, host_bytes);
    else
        __sanitizer_start_switch_fiber(&from->fake, to->stack, STACK_BYTES);
#endif
#if defined(__x86_64__)
    emulator_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived(from->fake);
}

/* A thread that can go on, by the order that is asked for; NULL: there is none. */
UNSEEN static Thread *find_ready()
{
    unsigned from = now == &host ? (order == BACKWARDS ? 0 : n_threads - 1) : now->index;
    if (order == RANDOM)
        from = (unsigned)(draw() % n_threads);
    for (unsigned i = 1; i <= n_threads; i++) {
        unsigned at = order == BACKWARDS ? from + n_threads - i : from + i;
        if (thread[at % n_threads].state == READY)
            return &thread[at % n_threads];
    }
    return nullptr;
}

/* Somebody else's turn: when all wait at the barrier, it opens. source: CUDA C++ Programming Guide,
 * "Synchronization Functions": all of a block's threads come to a barrier, or none. */
UNSEEN static void yield()
{
    Thread *next = find_ready();
    if (next == nullptr && n_alive == 0)
        next = &host;
    if (next == nullptr && n_waiting == n_alive) {
        if (n_alive < n_threads)
            give_up("threads of a block wait at a barrier for others that have left");
        for (unsigned i = 0; i < n_threads; i++)
            if (thread[i].state == AT_BARRIER)
                thread[i].state = READY;
        n_waiting = 0;
        generation++;
        next = find_ready();
    }
    if (next == nullptr)
        give_up("threads wait for others that never come");
    switch_to(next);
}

UNSEEN static void run_thread()
{
    arrived(nullptr);
    for (;;) {
#if defined(__SANITIZE_THREAD__)
        __tsan_acquire(&block_begin);
#endif
        kernel(kernel_of);
#if defined(__SANITIZE_THREAD__)
        __tsan_release(&block_end);
#endif
        now->state = DONE;
        now->line = 0;
        n_alive--;
        yield();
    }
}

UNSEEN static void begin_thread(Thread *t, unsigned index)
{
    t->index = index;
    t->state = READY;
    t->line = t->n_shared = 0;
    t->shared_end = 0;
    if (t->stack != nullptr)
        return; /* it waits in run_thread() */
    t->stack = (char *)mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t->stack == MAP_FAILED || mprotect(t->stack, 4096, PROT_NONE) != 0)
        give_up("no memory for a stack");
#if defined(__SANITIZE_THREAD__)
    t->tsan = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
    /* Stacks that all began at the same place of a page would share few lines of the cache. At
     * its first instruction a function's stack is 8 short of a multiple of 16. */
    void **sp = (void **)(t->stack + STACK_BYTES - index * 320 % 4096) - 1;
    *--sp = (void *)run_thread;
    for (int saved = 0; saved < 6; saved++)
        *--sp = nullptr;
    t->sp = sp;
#else
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = t->stack;
    t->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&t->context, run_thread, 0);
#endif
}

/* ---- meeting --------------------------------------------------------------------------------- */

UNSEEN static void barrier(int line)
{
    for (unsigned i = 0; i < n_threads; i++)
        if (thread[i].state == AT_BARRIER && thread[i].line != line) {
            now->line = line;
            give_up("threads of a block meet at different barriers");
        }
#if defined(__SANITIZE_THREAD__)
    char *sync = &barrier_order[generation & 1];
    __tsan_release(sync);
#endif
    now->state = AT_BARRIER;
    now->line = line;
    n_waiting++;
    yield();
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(sync);
#endif
}

/* Each lane of the mask hands in its operands; the last one does the work for all. */
UNSEEN static void together(unsigned mask, void *operand, int line, void (*work)(Meeting *))
{
    unsigned warp = now->index / WARP, lane = now->index % WARP, bit = 1u << lane;
    if ((mask & bit) == 0)
        give_up("a lane is in an operation whose mask leaves it out");
    Meeting *m = nullptr, *free = nullptr;
    for (Meeting *x = meeting[warp]; x < meeting[warp] + TEAMS; x++) {
        if (x->came == 0)
            free = x;
        else if (x->mask == mask)
            m = x;
        else if ((x->mask & mask) != 0)
            give_up("lanes of a warp have masks that overlap");
    }
    m = m != nullptr ? m : free;
    if (m == nullptr)
        give_up("too many teams in a warp");
    m->mask = mask;
    m->operand[lane] = operand;
    m->came |= bit;
    if (m->came != mask) {
        now->state = IN_WARP;
        now->line = line;
        yield();
        return;
    }
    m->came = 0;
    work(m);
    for (unsigned l = 0; l < WARP; l++)
        if (l != lane && (mask >> l & 1) != 0)
            thread[warp * WARP + l].state = READY;
}

template <class T> struct Shuffle {
    T value, result;
    unsigned from;
};

template <class T> UNSEEN void exchange(Meeting *m)
{
    for (unsigned l = 0; l < WARP; l++) {
        if ((m->mask >> l & 1) == 0)
            continue;
        Shuffle<T> *s = (Shuffle<T> *)m->operand[l];
        if ((m->mask >> s->from & 1) == 0)
            give_up("a shuffle asks a lane that is not in it");
        s->result = ((Shuffle<T> *)m->operand[s->from])->value;
    }
}

template <class T> UNSEEN T shuffle(unsigned mask, T value, unsigned from, int line)
{
    Shuffle<T> s = {value, value, from};
    together(mask, &s, line, exchange<T>);
    return s.result;
}

UNSEEN static inline unsigned lane_above(unsigned by, unsigned width)
{
    unsigned lane = now->index % WARP;
    return lane % width + by < width ? lane + by : lane;
}

UNSEEN static inline unsigned lane_of(unsigned from, unsigned width)
{
    unsigned lane = now->index % WARP;
    return lane - lane % width + from % width;
}

UNSEEN static void turn(Meeting *m)
{
    team_generation[*(unsigned *)m->operand[__builtin_ctz(m->mask)]]++;
}

UNSEEN static void meet_warp(unsigned mask, int line)
{
    unsigned team = now->index / WARP * WARP + (unsigned)__builtin_ctz(mask);
#if defined(__SANITIZE_THREAD__)
    char *sync = &team_order[team][team_generation[team] & 1];
    __tsan_release(sync);
#endif
    together(mask, &team, line, turn);
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(sync);
#endif
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* NaN as f32, f64, f16 and bf16; as an index far outside of anything. */
UNSEEN static void poison(char *p, size_t n)
{
    static const unsigned char pattern[] = {0xc1, 0x7f, 0xf8, 0x7f};
    for (size_t i = 0; i < n; i++)
        p[i] = (char)pattern[i % 4];
}

/* The n-th array that a thread declares is that of all threads of the block. There is a gap
 * before each, and it has no more alignment than it asks for. */
UNSEEN static void *shared(size_t bytes)
{
    const size_t align = 16;
    size_t at = (now->shared_end + 64 + align - 1) / align * align;
    at += at / align % 2 == 0 ? align : 0;
    now->shared_end = at + bytes;
    if (now->n_shared++ < shared_known)
        return shared_base + at;
    shared_known++;
    shared_bytes += bytes;
    if (shared_bytes > SHARED_BYTES || now->shared_end > SHARED_ROOM)
        give_up("more shared memory than a block has");
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(shared_base + at, bytes);
#endif
    poison(shared_base + at, bytes);
    return shared_base + at;
}

/* ---- launches -------------------------------------------------------------------------------- */

UNSEEN static void run_block(unsigned block)
{
    blockIdx = {block, 0, 0};
    shared_base = (char *)aligned_alloc(4096, SHARED_ROOM); /* of this block alone */
    shared_known = 0;
    shared_bytes = 0;
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(shared_base, SHARED_ROOM);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_release(&block_begin);
#endif
    for (unsigned t = 0; t < n_threads; t++)
        begin_thread(&thread[t], t);
    n_alive = n_threads;
    n_waiting = 0;
    memset(meeting, 0, sizeof meeting);
    yield();
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(shared_base, SHARED_ROOM);
#endif
#if defined(__SANITIZE_THREAD__)
    /* Freed by one that has waited for all of the block's threads. */
    static void *undertaker = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(undertaker, __tsan_switch_to_fiber_no_sync);
    __tsan_acquire(&block_end);
    free(shared_base);
    __tsan_switch_to_fiber(host.tsan, __tsan_switch_to_fiber_no_sync);
#else
    free(shared_base);
#endif
}

UNSEEN static void launch_body(unsigned blocks, unsigned threads, void (*body)(void *), void *of)
{
    if (threads < 1 || threads > MAX_THREADS)
        give_up("a block has 1 to 1024 threads");
    kernel = body;
    kernel_of = of;
    n_threads = threads;
#if defined(__SANITIZE_THREAD__)
    host.tsan = __tsan_get_current_fiber();
#endif
    unsigned first = order == RANDOM && blocks > 0 ? (unsigned)(draw() % blocks) : 0;
    for (unsigned b = 0; b < blocks; b++)
        run_block(order == BACKWARDS ? blocks - 1 - b : (first + b) % blocks);
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(&block_end);
#endif
}

template <class... A> struct Call {
    void (*kernel)(A...);
    void **argument;
};

template <class... A, size_t... I> void call(const Call<A...> *c, std::index_sequence<I...>)
{
    c->kernel((A)c->argument[I]...);
}

/* argument[i]: the i-th pointer that the kernel takes. */
template <class... A>
void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void **argument)
{
    Call<A...> c = {kernel, argument};
    launch_body(
        blocks, threads,
        [](void *of) { call((const Call<A...> *)of, std::index_sequence_for<A...>{}); }, &c);
}

} // namespace emulator

#define SHARED(type, name, dims)                                                                   \
    type(&name) dims = *(type(*) dims)emulator::shared(sizeof(type dims))
#define __syncthreads()    emulator::barrier(__LINE__)
#define __syncwarp(mask)   emulator::meet_warp(mask, __LINE__)
#define __shfl_sync(mask, x, from, width)                                                          \
    emulator::shuffle(mask, x, emulator::lane_of(from, width), __LINE__)
#define __shfl_down_sync(mask, x, by, width)                                                       \
    emulator::shuffle(mask, x, emulator::lane_above(by, width), __LINE__)

#endif
