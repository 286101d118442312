/* A stand-in for libcuda.so.1 on a machine without a GPU. Launches run the kernels of a library that
 * mock_kernels.cpp makes, by the emulator.
 *
 *   GRADC_MOCK_KERNELS   that library
 *   GRADC_MOCK_FAIL      N:CODE, the N-th call fails with this code; codes from 700 on lose the
 *                        context: all that follows fails and what is queued never runs, until
 *                        nobody holds it any more. With 0 it succeeds and gives nothing
 *   GRADC_MOCK_DEVICES, _DRIVER, _ARCH, _MEMORY    how many, CUDA version (13000), 90, bytes
 *   GRADC_MOCK_NAME      of its devices, "Mock 90"
 *
 * It is stricter than a driver. What is queued runs when something waits for it, and no earlier;
 * until then memory on the host that it will fill is full of rubbish. Device memory starts full of
 * NaN, and nothing lies behind it. Its clock goes on by 1 us an event, and by 2 us and 1 us a block
 * a launch. A copy that is captured has pinned memory on the host. What is no
 * use of the interface (a handle that is none, a pointer to nowhere, a function without a context,
 * something that is left when the context ends) ends the process with status 96. */
#include "mock.hpp"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

typedef int Result;
typedef uint64_t Pointer;
typedef std::function<void()> Work;

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    NO_BINARY = 209,
    UNSUPPORTED_PTX = 222,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    FIRST_STICKY = 700,
    PAGE = 4096
};

/* ---- what there is ------------------------------------------------------------------------------ */

struct Graph {
    std::vector<Work> work;
};
struct Queued {
    Work work;
    const void *uses; /* the executable graph or the module that it is from; nullptr for copies */
};
struct Stream {
    std::vector<Queued> queue;
    Graph *capture = nullptr;
};
struct Event {
    Stream *stream = nullptr;
    size_t behind = 0; /* so much of the queue was there; runs of it are subtracted */
    bool timed = false;
    long at = -1; /* on the clock; -1: it has not been reached */
};
struct Module {
    std::string image;
    std::set<struct Function *> functions;
};
struct Function {
    const MockKernel *kernel;
};

static bool started;
static long n_calls, fail_at, fail_code = OUT_OF_MEMORY;
static const char *failed = ""; /* the call that was made to fail */
static int retained, lost, last_device;
static thread_local bool context_current;
static std::recursive_mutex door; /* threads come in one after the other */
static std::map<Pointer, size_t> memory, pinned, foreign;
static std::set<Stream *> streams;
static std::set<Event *> events;
static std::set<Module *> modules;
static std::set<Graph *> graphs, executables;
static size_t device_bytes, most_device_bytes;
static long n_launches, n_graph_launches, clock_us;

[[noreturn]] static void misuse(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "mock: ");
    vfprintf(stderr, format, ap);
    fprintf(stderr, "\n");
    fflush(nullptr);
    _exit(96);
}

static long setting(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s != nullptr && *s != 0 ? atol(s) : otherwise;
}

static void read_failure()
{
    static bool known;
    const char *s = getenv("GRADC_MOCK_FAIL");
    if (known || s == nullptr)
        return;
    known = true;
    fail_at = atol(s);
    if (strchr(s, ':') != nullptr)
        fail_code = atol(strchr(s, ':') + 1);
}

/* Each call begins here. */
static Result begin(const char *what, bool in_context)
{
    read_failure();
    n_calls++;
    if (in_context && !context_current)
        misuse("%s: there is no context", what);
    if (lost != 0 && in_context)
        return lost;
    if (n_calls != fail_at)
        return OK;
    failed = what;
    if (in_context && fail_code >= FIRST_STICKY)
        lost = (int)fail_code;
    return (Result)fail_code;
}

#define BEGIN(in_context)                                                                          \
    std::lock_guard<std::recursive_mutex> inside(door);                                            \
    if (Result r = begin(__func__, in_context))                                                    \
    return r
/* What is to give something: it gives nothing, and succeeds, where it is to fail with 0. */
#define BEGIN_GIFT(in_context)                                                                     \
    BEGIN(in_context);                                                                             \
    if (is_hollow())                                                                               \
    return OK
/* What gives something back does so even where it fails. */
#define BEGIN_RELEASE()                                                                            \
    std::lock_guard<std::recursive_mutex> inside(door);                                            \
    Result released = begin(__func__, true)

static bool is_hollow()
{
    return n_calls == fail_at && fail_code == OK;
}

template <class T> static T *known(const std::set<T *> &all, T *x, const char *what)
{
    if (all.count(x) == 0)
        misuse("%s: this is no handle", what);
    return x;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static bool within(const std::map<Pointer, size_t> &all, Pointer p, size_t n)
{
    auto next = all.upper_bound(p);
    if (next == all.begin())
        return false;
    auto &x = *--next;
    return p >= x.first && p + n <= x.first + x.second;
}

static bool on_device(Pointer p, size_t n)
{
    return within(memory, p, n) || within(foreign, p, n);
}

static void must_be_device(Pointer p, size_t n, const char *what)
{
    if (!on_device(p, n))
        misuse("%s: %zu bytes at %llx are not on the device", what, n, (unsigned long long)p);
}

static void must_be_host(const void *p, size_t n, bool captured, const char *what)
{
    if (on_device((Pointer)p, 1))
        misuse("%s: the memory on the host is on the device", what);
    if (captured && !within(pinned, (Pointer)p, n))
        misuse("%s: a copy is captured whose memory on the host is not pinned", what);
}

/* Right before a page that nobody may touch. */
static void *map_guarded(size_t n)
{
    size_t room = (n + PAGE - 1) / PAGE * PAGE;
    char *at = (char *)mmap(nullptr, room + PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at + room, PAGE, PROT_NONE) != 0)
        return nullptr;
    return at + room - n;
}

static void unmap_guarded(void *p, size_t n)
{
    size_t room = (n + PAGE - 1) / PAGE * PAGE;
    munmap((char *)p + n - room, room + PAGE);
}

/* ---- streams ---------------------------------------------------------------------------------------- */

static Stream *stream_of(Stream *s, const char *what)
{
    return known(streams, s, what);
}

static void put(Stream *s, Work w, const void *uses = nullptr)
{
    if (s->capture != nullptr)
        s->capture->work.push_back(std::move(w));
    else
        s->queue.push_back({std::move(w), uses});
}

static void run_queue(Stream *s, size_t n)
{
    std::vector<Queued> work(s->queue.begin(), s->queue.begin() + (long)n);
    s->queue.erase(s->queue.begin(), s->queue.begin() + (long)n);
    for (Event *e : events)
        if (e->stream == s)
            e->behind = e->behind > n ? e->behind - n : 0;
    for (Queued &q : work)
        if (lost == 0) /* else it never comes to run */
            q.work();
}

/* Who gives back what queued work uses has waited for it, unless it can't run any more. Work of
 * others, which another thread may have queued meanwhile, is none of theirs. */
static void must_be_idle(const void *used, const char *what)
{
    for (Stream *s : streams)
        for (const Queued &q : s->queue)
            if (lost == 0 && q.uses == used)
                misuse("%s: work is queued", what);
}

static void must_not_capture(Stream *s, const char *what)
{
    if (s->capture != nullptr)
        misuse("%s: the stream is being captured", what);
}

/* ---- kernels --------------------------------------------------------------------------------------- */

static const MockKernel *kernels()
{
    static const MockKernel *list;
    const char *path = getenv("GRADC_MOCK_KERNELS");
    if (list == nullptr && path != nullptr) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        list = library != nullptr ? (const MockKernel *)dlsym(library, "gradc_mock_kernels") : nullptr;
    }
    if (list == nullptr)
        misuse("GRADC_MOCK_KERNELS names no library of kernels: %s", path != nullptr ? dlerror() : "");
    return list;
}

/* Of PTX: the number behind a word; -1: it has none. */
static int ptx_number(const char *text, const char *word, bool with_minor)
{
    const char *at = strstr(text, word);
    if (at == nullptr)
        return -1;
    at += strlen(word);
    int major = atoi(at);
    const char *dot = strchr(at, '.');
    return with_minor ? 10 * major + (dot != nullptr ? atoi(dot + 1) : 0) : major;
}

static void say_log(unsigned n, int *option, void **value, const char *text)
{
    enum { LOG = 5, LOG_BYTES = 6 };
    char *log = nullptr;
    size_t room = 0;
    for (unsigned i = 0; i < n; i++) {
        if (option[i] == LOG)
            log = (char *)value[i];
        else if (option[i] == LOG_BYTES)
            room = (size_t)value[i];
    }
    if (log != nullptr && room > 0)
        snprintf(log, room, "%s\nmore\n", text);
}

static Result check_ptx(const char *text, unsigned n, int *option, void **value)
{
    int version = ptx_number(text, ".version ", true), arch = ptx_number(text, ".target sm_", false);
    if (version < 0 || arch < 0)
        return INVALID_IMAGE;
    /* source: PTX ISA, "Release Notes": 9.0 came with CUDA 13.0 */
    if (version / 10 > setting("GRADC_MOCK_DRIVER", 13000) / 1000 - 4) {
        say_log(n, option, value, "ptxas: unsupported .version");
        return UNSUPPORTED_PTX;
    }
    return arch > setting("GRADC_MOCK_ARCH", 90) ? NO_BINARY : OK;
}

/* A cubin is as long as its table of sections, or of segments, ends. source: ELF-64 */
static size_t elf_bytes(const char *at)
{
    uint64_t sections, segments;
    uint16_t n_sections, n_segments;
    memcpy(&segments, at + 32, 8);
    memcpy(&sections, at + 40, 8);
    memcpy(&n_segments, at + 56, 2);
    memcpy(&n_sections, at + 60, 2);
    uint64_t a = segments + 56u * n_segments, b = sections + 64u * n_sections;
    return a > b ? a : b;
}

extern "C" {

/* ---- for tests -------------------------------------------------------------------------------------- */

void mock_fail(long nth, long code)
{
    read_failure(); /* which is not to come later */
    n_calls = 0;
    fail_at = nth;
    fail_code = code;
}

long mock_calls()
{
    return n_calls;
}

const char *mock_failed()
{
    return failed;
}

/* Whose context has been retained last: 7 and its number. */
int mock_device()
{
    return last_device;
}

/* Memory of this process that is on the device from now on, and outlives contexts: a caller's. */
void mock_lend(void *p, size_t n)
{
    foreign[(Pointer)p] = n;
}

/* Allocated at most; launches; launches of graphs. */
void mock_counts(long *bytes, long *launches, long *graph_launches)
{
    *bytes = (long)most_device_bytes;
    *launches = n_launches;
    *graph_launches = n_graph_launches;
    most_device_bytes = device_bytes;
    n_launches = n_graph_launches = 0;
}

/* ---- driver and devices ------------------------------------------------------------------------------ */

Result cuInit(unsigned flags)
{
    BEGIN(false);
    if (flags != 0)
        misuse("cuInit: flags");
    started = true;
    return OK;
}

Result cuDriverGetVersion(int *version)
{
    BEGIN_GIFT(false);
    *version = (int)setting("GRADC_MOCK_DRIVER", 13000);
    return OK;
}

Result cuGetErrorName(Result r, const char **name)
{
    *name = r == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
    return *name != nullptr ? OK : INVALID_VALUE;
}

Result cuGetErrorString(Result r, const char **text)
{
    *text = r == OUT_OF_MEMORY ? "out of memory" : r == 700 ? "an illegal memory access was encountered" : nullptr;
    return *text != nullptr ? OK : INVALID_VALUE;
}

static Result need_start(const char *what)
{
    if (!started)
        misuse("%s: before cuInit", what);
    return OK;
}

Result cuDeviceGetCount(int *n)
{
    BEGIN_GIFT(false);
    *n = (int)setting("GRADC_MOCK_DEVICES", 1);
    return need_start(__func__);
}

Result cuDeviceGet(int *d, int ordinal)
{
    BEGIN(false);
    *d = 7 + ordinal; /* handles are no ordinals */
    return ordinal < setting("GRADC_MOCK_DEVICES", 1) ? need_start(__func__) : INVALID_DEVICE;
}

static void must_be_a_device(int d, const char *what)
{
    if (d < 7 || d >= 7 + setting("GRADC_MOCK_DEVICES", 1))
        misuse("%s: this is no device", what);
}

Result cuDeviceGetName(char *name, int room, int d)
{
    BEGIN_GIFT(false);
    must_be_a_device(d, __func__);
    const char *own = getenv("GRADC_MOCK_NAME");
    snprintf(name, (size_t)room, "Mock %ld", setting("GRADC_MOCK_ARCH", 90));
    if (own != nullptr)
        snprintf(name, (size_t)room, "%s", own);
    return OK;
}

Result cuDeviceGetAttribute(int *value, int attribute, int d)
{
    BEGIN_GIFT(false);
    must_be_a_device(d, __func__);
    long arch = setting("GRADC_MOCK_ARCH", 90);
    *value = (int)(attribute == 75 ? arch / 10 : attribute == 76 ? arch % 10 : 0);
    return OK;
}

Result cuDeviceTotalMem_v2(size_t *bytes, int d)
{
    BEGIN_GIFT(false);
    must_be_a_device(d, __func__);
    *bytes = (size_t)setting("GRADC_MOCK_MEMORY", 1L << 32);
    return OK;
}

/* ---- the context --------------------------------------------------------------------------------------- */

Result cuDevicePrimaryCtxRetain(void **c, int d)
{
    BEGIN_GIFT(false);
    must_be_a_device(d, __func__);
    if (lost != 0)
        return lost;
    retained++;
    last_device = d;
    *c = &retained;
    return OK;
}

static void must_be_empty()
{
    size_t left = memory.size() + pinned.size() + streams.size() + events.size() + modules.size() +
                  graphs.size() + executables.size();
    if (left > 0)
        misuse("the context ends with %zu blocks, %zu pinned, %zu streams, %zu events, %zu modules, "
               "%zu graphs, %zu executable ones",
               memory.size(), pinned.size(), streams.size(), events.size(), modules.size(),
               graphs.size(), executables.size());
}

Result cuDevicePrimaryCtxRelease_v2(int d)
{
    std::lock_guard<std::recursive_mutex> inside(door);
    Result r = begin(__func__, false);
    must_be_a_device(d, __func__);
    if (retained <= 0)
        misuse("%s: nobody holds it", __func__);
    if (--retained == 0) {
        must_be_empty();
        lost = 0;
    }
    return r;
}

Result cuCtxPushCurrent_v2(void *c)
{
    BEGIN(false);
    if (c != &retained || retained == 0)
        misuse("%s: this is no context", __func__);
    if (context_current)
        misuse("%s: it is current already", __func__);
    context_current = true;
    return OK;
}

Result cuCtxPopCurrent_v2(void **c)
{
    std::lock_guard<std::recursive_mutex> inside(door);
    if (!context_current)
        misuse("%s: none is current", __func__);
    context_current = false;
    *c = &retained;
    return begin(__func__, false);
}

/* ---- memory ------------------------------------------------------------------------------------------- */

Result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BEGIN_GIFT(true);
    *total = (size_t)setting("GRADC_MOCK_MEMORY", 1L << 32);
    *free_bytes = *total - device_bytes;
    return OK;
}

Result cuMemAlloc_v2(Pointer *p, size_t n)
{
    BEGIN_GIFT(true);
    if (n == 0 || device_bytes + n > (size_t)setting("GRADC_MOCK_MEMORY", 1L << 32))
        return n == 0 ? INVALID_VALUE : OUT_OF_MEMORY;
    void *at = map_guarded(n);
    if (at == nullptr)
        return OUT_OF_MEMORY;
    memset(at, 0xff, n);
    *p = (Pointer)at;
    memory[*p] = n;
    device_bytes += n;
    most_device_bytes = device_bytes > most_device_bytes ? device_bytes : most_device_bytes;
    return OK;
}

Result cuMemFree_v2(Pointer p)
{
    BEGIN_RELEASE();
    if (memory.count(p) == 0)
        misuse("%s: this was not allocated", __func__);
    for (Stream *s : streams)
        run_queue(s, s->queue.size());
    device_bytes -= memory[p];
    unmap_guarded((void *)p, memory[p]);
    memory.erase(p);
    return released;
}

Result cuMemHostAlloc(void **p, size_t n, unsigned)
{
    BEGIN_GIFT(true);
    if (posix_memalign(p, 64, n) != 0)
        return OUT_OF_MEMORY;
    memset(*p, 0xff, n);
    pinned[(Pointer)*p] = n;
    return OK;
}

Result cuMemFreeHost(void *p)
{
    BEGIN_RELEASE();
    if (pinned.erase((Pointer)p) == 0)
        misuse("%s: this was not allocated", __func__);
    for (Stream *s : streams)
        run_queue(s, s->queue.size());
    free(p);
    return released;
}

Result cuPointerGetAttribute(void *value, int attribute, Pointer p)
{
    BEGIN_GIFT(true);
    if (attribute != 2)
        misuse("%s: attribute %d", __func__, attribute);
    bool device = on_device(p, 1);
    if (!device && !within(pinned, p, 1))
        return INVALID_VALUE;
    *(unsigned *)value = device ? 2 : 1;
    return OK;
}

/* ---- copies --------------------------------------------------------------------------------------------- */

Result cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t n, Stream *s)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_be_device(to, n, __func__);
    must_be_host(from, n, s->capture != nullptr, __func__);
    if (within(pinned, (Pointer)from, n)) { /* it is read when its turn comes */
        put(s, [=] { memcpy((void *)to, from, n); });
        return OK;
    }
    std::string copy((const char *)from, n);
    put(s, [=] { memcpy((void *)to, copy.data(), n); });
    return OK;
}

Result cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t n, Stream *s)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_be_device(from, n, __func__);
    must_be_host(to, n, s->capture != nullptr, __func__);
    if (s->capture == nullptr)
        memset(to, 0xa5, n);
    put(s, [=] { memcpy(to, (void *)from, n); });
    return OK;
}

Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t n, Stream *s)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_be_device(to, n, __func__);
    must_be_device(from, n, __func__);
    put(s, [=] { memcpy((void *)to, (void *)from, n); });
    return OK;
}

Result cuMemsetD8Async(Pointer to, unsigned char x, size_t n, Stream *s)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_be_device(to, n, __func__);
    put(s, [=] { memset((void *)to, x, n); });
    return OK;
}

Result cuMemsetD32Async(Pointer to, unsigned x, size_t n, Stream *s)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_be_device(to, 4 * n, __func__);
    if (to % 4 != 0)
        misuse("%s: not aligned", __func__);
    put(s, [=] {
        for (size_t i = 0; i < n; i++)
            memcpy((char *)to + 4 * i, &x, 4);
    });
    return OK;
}

/* ---- modules -------------------------------------------------------------------------------------------- */

Result cuModuleLoadDataEx(Module **m, const void *image, unsigned n, int *option, void **value)
{
    BEGIN_GIFT(true);
    const char *at = (const char *)image;
    bool elf = memcmp(at, "\177ELF", 4) == 0;
    Result r = elf ? OK : check_ptx(at, n, option, value);
    if (r != OK)
        return r;
    *m = new Module;
    (*m)->image.assign(at, elf ? elf_bytes(at) : strlen(at));
    modules.insert(*m);
    return OK;
}

Result cuModuleUnload(Module *m)
{
    BEGIN_RELEASE();
    known(modules, m, __func__);
    must_be_idle(m, __func__);
    for (Function *f : m->functions)
        delete f;
    modules.erase(m);
    delete m;
    return released;
}

Result cuModuleGetFunction(Function **f, Module *m, const char *name)
{
    BEGIN_GIFT(true);
    known(modules, m, __func__);
    if (m->image.find(name) == std::string::npos)
        return NOT_FOUND;
    for (const MockKernel *k = kernels(); k->name != nullptr; k++) {
        if (strcmp(k->name, name) != 0)
            continue;
        *f = new Function{k};
        m->functions.insert(*f);
        return OK;
    }
    misuse("there is no kernel %s among those that run here", name);
}

static Module *module_of(Function *f)
{
    for (Module *m : modules)
        if (m->functions.count(f) != 0)
            return m;
    return nullptr;
}

Result cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, Stream *s, void **argument, void **extra)
{
    BEGIN(true);
    stream_of(s, __func__);
    Module *m = module_of(f);
    if (m == nullptr || extra != nullptr || shared != 0 || gy != 1 || gz != 1 || by != 1 || bz != 1)
        misuse("%s: not what this runtime launches", __func__);
    if (gx == 0 || gx > 0x7fffffff || bx == 0 || bx > 1024)
        return INVALID_VALUE;
    std::vector<void *> copy;
    for (int i = 0; i < f->kernel->arguments; i++) {
        Pointer p = *(Pointer *)argument[i];
        must_be_device(p, 1, f->kernel->name);
        copy.push_back((void *)p);
    }
    const MockKernel *k = f->kernel;
    Work launched = [=]() mutable {
        n_launches++;
        clock_us += 2 + gx;
        k->run(gx, bx, copy.data());
    };
    put(s, launched, m);
    return OK;
}

/* ---- streams, events, graphs ------------------------------------------------------------------------------ */

Result cuStreamCreate(Stream **s, unsigned)
{
    BEGIN_GIFT(true);
    streams.insert(*s = new Stream);
    return OK;
}

Result cuStreamDestroy_v2(Stream *s)
{
    BEGIN_RELEASE();
    stream_of(s, __func__);
    must_not_capture(s, __func__);
    run_queue(s, s->queue.size());
    streams.erase(s);
    delete s;
    return released;
}

Result cuStreamSynchronize(Stream *s)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_not_capture(s, __func__);
    run_queue(s, s->queue.size());
    return OK;
}

Result cuStreamBeginCapture_v2(Stream *s, int)
{
    BEGIN(true);
    stream_of(s, __func__);
    must_not_capture(s, __func__);
    s->capture = new Graph;
    return OK;
}

Result cuStreamEndCapture(Stream *s, Graph **g)
{
    BEGIN_RELEASE();
    stream_of(s, __func__);
    if (s->capture == nullptr)
        misuse("%s: nothing is captured", __func__);
    *g = nullptr;
    if (released == OK && !is_hollow())
        graphs.insert(*g = s->capture);
    else
        delete s->capture;
    s->capture = nullptr;
    return released;
}

Result cuGraphInstantiateWithFlags(Graph **e, Graph *g, unsigned long long)
{
    BEGIN_GIFT(true);
    known(graphs, g, __func__);
    executables.insert(*e = new Graph(*g));
    return OK;
}

Result cuGraphLaunch(Graph *e, Stream *s)
{
    BEGIN(true);
    known(executables, e, __func__);
    stream_of(s, __func__);
    must_not_capture(s, __func__);
    n_graph_launches++;
    for (Work &w : e->work)
        put(s, w, e);
    return OK;
}

Result cuGraphDestroy(Graph *g)
{
    BEGIN_RELEASE();
    graphs.erase(known(graphs, g, __func__));
    delete g;
    return released;
}

Result cuGraphExecDestroy(Graph *e)
{
    BEGIN_RELEASE();
    must_be_idle(e, __func__);
    executables.erase(known(executables, e, __func__));
    delete e;
    return released;
}

Result cuEventCreate(Event **e, unsigned flags)
{
    BEGIN_GIFT(true);
    enum { NO_TIMING = 2 };
    events.insert(*e = new Event);
    (*e)->timed = (flags & NO_TIMING) == 0;
    return OK;
}

Result cuEventRecord(Event *e, Stream *s)
{
    BEGIN(true);
    known(events, e, __func__);
    e->stream = stream_of(s, __func__);
    must_not_capture(s, __func__);
    e->at = -1;
    put(s, [=] {
        if (events.count(e) != 0)
            e->at = clock_us++;
    });
    e->behind = s->queue.size();
    return OK;
}

Result cuEventElapsedTime(float *ms, Event *from, Event *to)
{
    BEGIN_GIFT(true);
    for (Event *e : {from, to})
        if (!known(events, e, __func__)->timed)
            misuse("%s: the event was made to have no time", __func__);
        else if (e->stream == nullptr)
            return INVALID_HANDLE;
        else if (e->at < 0)
            return NOT_READY;
    *ms = (float)(to->at - from->at) / 1000;
    return OK;
}

Result cuEventSynchronize(Event *e)
{
    BEGIN(true);
    known(events, e, __func__);
    if (e->stream != nullptr && streams.count(e->stream) != 0)
        run_queue(e->stream, e->behind);
    return OK;
}

Result cuEventDestroy_v2(Event *e)
{
    BEGIN_RELEASE();
    events.erase(known(events, e, __func__));
    delete e;
    return released;
}
}

/* When the library goes, and with it the process. */
struct AtEnd {
    ~AtEnd()
    {
        if (retained != 0)
            misuse("the context is still held");
    }
};
static AtEnd at_end;
