/* What a program does with a CUDA object, on the mock driver: calls that are right, calls that are
 * not, and each call of the driver failing once. The last line is "passed=N failed=N skipped=0".
 *
 *   host contract               results are those of the object for CPUs; what is refused
 *   host sweep CODE             the N-th call of the driver fails with CODE, for each N
 *   host hollow                 the N-th call succeeds and gives nothing, for each N
 *   host replay N               two handles take N queued steps each: the same bits
 *   host open                   prints what gradc_cuda_open, or init, says; status 0 if both
 * succeed
 *
 * It is linked with digits.o and digits.cuda.o of examples/digits.model. */
#include <pthread.h>

#include "host.h"

int passed, failed;
float image[STEPS][ROWS * PIXELS];
int32_t label[STEPS][ROWS];

static void make_data(void)
{
    uint32_t x = 1;
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < ROWS * PIXELS; i++) {
            x = x * 1664525u + 1013904223u;
            image[s][i] = (float)(x >> 28);
            label[s][i / PIXELS] = (int32_t)(x >> 20) % CLASSES;
        }
}

/* ---- results: those of the object for CPUs
 * ------------------------------------------------------------ */

static float cpu_loss[STEPS], cpu_logits[ROWS * CLASSES], cpu_short;

/* Steps; then what the model makes of the first batch, and the loss of three rows of it. */
static void train_on_cpu(void)
{
    digits *g;
    void *block = gradc_alloc(DIGITS_ARENA_BYTES, DIGITS_ARENA_ALIGN);
    gradc_options o = options(NULL);
    EXPECT(digits_init(block, DIGITS_ARENA_BYTES, &o, &g) == GRADC_OK);
    digits_inputs in = {0};
    for (int s = 0; s < STEPS; s++) {
        in = (digits_inputs){.image = image[s], .label = label[s]};
        EXPECT(digits_step(g, &in, &cpu_loss[s]) == GRADC_OK);
    }
    in = (digits_inputs){.image = image[0]};
    EXPECT(digits_eval(g, &in, &(digits_outputs){.logits = cpu_logits}) == GRADC_OK);
    in = (digits_inputs){.rows = 3, .image = image[0], .label = label[0]};
    EXPECT(digits_eval(g, &in, &(digits_outputs){.loss = &cpu_short}) == GRADC_OK);
    gradc_free(block);
}

static void check_trained(digits_cuda *g)
{
    float logits[ROWS * CLASSES], loss = 0;
    digits_cuda_inputs in = {.image = image[0]};
    EXPECT(digits_cuda_eval(g, &in, &(digits_cuda_outputs){.logits = logits}) == GRADC_OK);
    EXPECT(memcmp(logits, cpu_logits, sizeof logits) == 0);
    in = (digits_cuda_inputs){.rows = 3, .image = image[0], .label = label[0]};
    EXPECT(digits_cuda_eval(g, &in, &(digits_cuda_outputs){.loss = &loss}) == GRADC_OK);
    EXPECT(loss == cpu_short);
}

static void check_steps(const Mock *m, const gradc_cuda *gpu)
{
    Block b;
    digits_cuda *g;
    long bytes, launches, graphs;
    m->counts(&bytes, &launches, &graphs);
    EXPECT(init(&b, gpu, &g) == GRADC_OK);
    m->counts(&bytes, &launches, &graphs);
    EXPECT(bytes == DIGITS_CUDA_DEVICE_BYTES && graphs == 0);
    for (int s = 0; s < STEPS; s++) {
        float loss = 0;
        digits_cuda_inputs in = inputs(s);
        EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_OK);
        EXPECT(loss == cpu_loss[s]);
    }
    m->counts(&bytes, &launches, &graphs);
    EXPECT(graphs == STEPS && bytes == DIGITS_CUDA_DEVICE_BYTES);
    check_trained(g);
    EXPECT(digits_cuda_close(g) == GRADC_OK);
    EXPECT(digits_cuda_close(g) == GRADC_BAD_STATE);
    EXPECT(digits_cuda_wait(g, NULL) == GRADC_BAD_STATE);
    EXPECT(strstr(digits_cuda_error(g), "closed") != NULL);
    /* two threads that close at once: the second one has passed the object's own look */
    EXPECT(gpu->close(g) == GRADC_BAD_STATE && gpu->wait(g, NULL) == GRADC_BAD_STATE);
    EXPECT(gpu->close(g) == GRADC_BAD_STATE); /* ... and is not taken for busy */
}

/* ---- watched steps -------------------------------------------------------------------------- */

void watched(void *of, int64_t op, double from, double to)
{
    Watched *w = of;
    w->in_order &= to >= from && (op < 0 ? w->launches == 0 && w->apart == 0 : from >= w->last);
    w->apart += op < 0;
    w->launches += op >= 0;
    w->last = op < 0 ? 0 : to;
}

/* The same bits, and a time for each launch; then graphs again. */
static void check_watch(const Mock *m, gradc_cuda *gpu)
{
    Block b;
    digits_cuda *g;
    long bytes, launches, graphs;
    EXPECT(init(&b, gpu, &g) == GRADC_OK);
    m->counts(&bytes, &launches, &graphs);
    for (int s = 0; s < STEPS; s++) {
        float loss = 0;
        Watched w = {.in_order = true};
        digits_cuda_inputs in = inputs(s);
        gradc_cuda_watch(gpu, s % 3 == 2 ? NULL : watched, &w);
        EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_OK && loss == cpu_loss[s]);
        m->counts(&bytes, &launches, &graphs);
        EXPECT(graphs == (s % 3 == 2) && w.in_order);
        EXPECT(s % 3 == 2 ? w.launches == 0 : w.launches == launches && w.apart == 1);
    }
    gradc_cuda_watch(gpu, NULL, NULL);
    gradc_cuda_watch(NULL, watched, NULL);
    check_trained(g);
    EXPECT(digits_cuda_close(g) == GRADC_OK);
}

/* A handle is closed while work of another one is queued: it is none of its own, and is done. */
static void check_close_beside(const gradc_cuda *gpu)
{
    Block b[2];
    digits_cuda *g[2];
    float loss = 0;
    digits_cuda_inputs in = inputs(0);
    for (int k = 0; k < 2; k++) {
        EXPECT(init(&b[k], gpu, &g[k]) == GRADC_OK);
        EXPECT(digits_cuda_step(g[k], &in, NULL) == GRADC_OK);
    }
    EXPECT(digits_cuda_close(g[1]) == GRADC_OK);
    EXPECT(digits_cuda_wait(g[0], &loss) == GRADC_OK && loss == cpu_loss[0]);
    EXPECT(digits_cuda_close(g[0]) == GRADC_OK);
}

/* Two threads, each with a handle of its own. */
static void *train_apart(void *gpu)
{
    Block b;
    digits_cuda *g;
    bool same = init(&b, gpu, &g) == GRADC_OK;
    for (int s = 0; s < STEPS && same; s++) {
        float loss = 0;
        digits_cuda_inputs in = inputs(s);
        same = digits_cuda_step(g, &in, &loss) == GRADC_OK && loss == cpu_loss[s];
    }
    return same && digits_cuda_close(g) == GRADC_OK ? gpu : NULL;
}

static void check_threads(gradc_cuda *gpu)
{
    pthread_t thread[2];
    void *right;
    for (int t = 0; t < 2; t++)
        EXPECT(pthread_create(&thread[t], NULL, train_apart, gpu) == 0);
    for (int t = 0; t < 2; t++)
        EXPECT(pthread_join(thread[t], &right) == 0 && right == gpu);
}

/* An object whose tables this library does not know, whatever the object itself has found. */
static void check_tables(const gradc_cuda *gpu)
{
    static gradc_cuda_handle h;
    gradc_cuda_program other = {.tables = GRADC_CUDA_TABLES + 1, .ident = "other_cuda"};
    gradc_options o = options(gpu);
    EXPECT(gpu->init(gpu, &other, &h, &o) == GRADC_BAD_ABI && h.state == NULL);
    EXPECT(strstr(h.text, "other_cuda has tables of version") != NULL);
}

static void check_nothing(const gradc_cuda *gpu)
{
    gradc_cuda_device about;
    gradc_cuda_use(gpu, NULL);
    gradc_cuda_about(gpu, NULL);
    gradc_cuda_about(gpu, &about);
    EXPECT(about.arch == 90 && about.devices == 1);
    gradc_cuda_about(NULL, &about);
    EXPECT(about.arch == 0 && about.name[0] == 0);
    gradc_cuda_close(NULL);
}

/* Steps that nobody waits for, whose inputs change as soon as they are queued. */
static void check_queue(const Mock *m, const gradc_cuda *gpu)
{
    Block b;
    digits_cuda *g;
    float loss = 0, x[ROWS * PIXELS];
    int32_t y[ROWS];
    long bytes, launches, graphs;
    EXPECT(init(&b, gpu, &g) == GRADC_OK);
    EXPECT(digits_cuda_wait(g, &loss) == GRADC_BAD_STATE); /* there is no loss yet */
    m->counts(&bytes, &launches, &graphs);
    for (int s = 0; s < STEPS; s++) {
        memcpy(x, image[s], sizeof x);
        memcpy(y, label[s], sizeof y);
        EXPECT(digits_cuda_step(g, &(digits_cuda_inputs){.image = x, .label = y}, NULL) ==
               GRADC_OK);
        memset(x, 0, sizeof x);
        memset(y, 0x7f, sizeof y);
    }
    long run;
    m->counts(&bytes, &run, &graphs);
    EXPECT(graphs == STEPS);
    EXPECT(digits_cuda_wait(g, &loss) == GRADC_OK && loss == cpu_loss[STEPS - 1]);
    m->counts(&bytes, &launches, &graphs);
    EXPECT(launches == run && graphs == 0); /* half of the steps had to wait for the wait */
    check_trained(g);
    EXPECT(digits_cuda_close(g) == GRADC_OK);
}

/* Inputs and outputs that are on the device, of whole batches and of some rows. */
static void check_device(const Mock *m, const gradc_cuda *gpu)
{
    Block b;
    digits_cuda *g;
    void *context;
    uint64_t x, y, z;
    float logits[ROWS * CLASSES], loss = 0;
    EXPECT(init(&b, gpu, &g) == GRADC_OK);
    EXPECT(m->retain(&context, 7) == 0 && m->push(context) == 0);
    EXPECT(m->allocate(&x, sizeof image[0]) == 0 && m->allocate(&y, sizeof label[0]) == 0);
    EXPECT(m->allocate(&z, sizeof logits) == 0 && m->pop(&context) == 0);
    digits_cuda_inputs in = {.image = (float *)x, .label = (int32_t *)y};
    for (int s = 0; s < STEPS; s++) { /* the mock's device memory is this process's */
        memcpy((void *)x, image[s], sizeof image[s]);
        memcpy((void *)y, label[s], sizeof label[s]);
        EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_OK && loss == cpu_loss[s]);
    }
    memcpy((void *)x, image[0], sizeof image[0]);
    in.label = NULL;
    EXPECT(digits_cuda_eval(g, &in, &(digits_cuda_outputs){.logits = (float *)z}) == GRADC_OK);
    EXPECT(digits_cuda_wait(g, NULL) == GRADC_OK);
    EXPECT(memcmp((void *)z, cpu_logits, sizeof cpu_logits) == 0);
    in = (digits_cuda_inputs){.rows = 3, .image = (float *)x, .label = label[0]};
    EXPECT(digits_cuda_eval(g, &in, &(digits_cuda_outputs){.loss = &loss}) == GRADC_OK);
    EXPECT(loss == cpu_short);
    ((int32_t *)y)[2] = CLASSES;
    in.label = (int32_t *)y;
    EXPECT(digits_cuda_step(g, &in, NULL) == GRADC_RANGE);
    EXPECT(strstr(digits_cuda_error(g), "label: element 2 is 10, outside of 0..10") != NULL);
    EXPECT(m->push(context) == 0 && m->release(x) == 0 && m->release(y) == 0 && m->release(z) == 0);
    EXPECT(m->pop(&context) == 0 && m->drop(7) == 0);
    EXPECT(digits_cuda_close(g) == GRADC_OK);
}

/* Steps on a stream of the caller's, behind what the caller has queued there, and done when the
 * caller has waited for it. */
static void queue_on_stream(const Mock *m, digits_cuda *g, void *stream, uint64_t x)
{
    void *context;
    long bytes, launches, graphs;
    m->counts(&bytes, &launches, &graphs);
    digits_cuda_inputs in = {.image = (float *)x, .label = label[0]};
    EXPECT(m->retain(&context, 7) == 0 && m->push(context) == 0);
    EXPECT(m->copy(x, image[0], sizeof image[0], stream) == 0 && m->pop(&context) == 0);
    EXPECT(digits_cuda_step(g, &in, NULL) == GRADC_OK);
    in = inputs(1);
    EXPECT(digits_cuda_step(g, &in, NULL) == GRADC_OK);
    m->counts(&bytes, &launches, &graphs);
    EXPECT(graphs == 2 && launches == 0);
    EXPECT(m->push(context) == 0 && m->synchronize(stream) == 0 && m->pop(&context) == 0);
    m->counts(&bytes, &launches, &graphs);
    EXPECT(launches > 0 && m->drop(7) == 0);
}

static void check_stream(const Mock *m)
{
    static float x[ROWS * PIXELS];
    Block b;
    digits_cuda *g;
    gradc_cuda *gpu;
    gradc_error e;
    void *context, *stream;
    float loss = 0;
    EXPECT(m->retain(&context, 7) == 0 && m->push(context) == 0);
    EXPECT(m->create(&stream, 0) == 0 && m->pop(&context) == 0);
    gradc_cuda_options o = {.struct_size = sizeof o, .stream = stream};
    EXPECT(gradc_cuda_open(&o, &gpu, &e) == GRADC_OK && init(&b, gpu, &g) == GRADC_OK);
    m->lend(x, sizeof x);
    queue_on_stream(m, g, stream, (uint64_t)(uintptr_t)x);
    EXPECT(digits_cuda_wait(g, &loss) == GRADC_OK && loss == cpu_loss[1]);
    for (int s = 2; s < STEPS; s++) {
        digits_cuda_inputs in = inputs(s);
        EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_OK && loss == cpu_loss[s]);
    }
    check_trained(g);
    EXPECT(digits_cuda_close(g) == GRADC_OK); /* the stream is still there */
    gradc_cuda_close(gpu);
    EXPECT(m->push(context) == 0 && m->destroy(stream) == 0 && m->pop(&context) == 0);
    EXPECT(m->drop(7) == 0);
}

/* The second of two devices; options that name none, or are none. */
static void check_choice(const Mock *m)
{
    Block b;
    digits_cuda *g;
    gradc_cuda *gpu;
    gradc_cuda_device about;
    gradc_error e;
    gradc_cuda_options o = {.struct_size = sizeof o, .device = 1};
    setenv("GRADC_MOCK_DEVICES", "2", 1);
    EXPECT(gradc_cuda_open(&o, &gpu, &e) == GRADC_OK && init(&b, gpu, &g) == GRADC_OK);
    gradc_cuda_about(gpu, &about);
    EXPECT(about.device == 1 && about.devices == 2 && gpu->device == 1 && m->device() == 8);
    EXPECT(digits_cuda_close(g) == GRADC_OK);
    gradc_cuda_close(gpu);
    for (int k = 0; k < 2; k++) {
        o.device = k == 0 ? 2 : -1;
        EXPECT(gradc_cuda_open(&o, &gpu, &e) == GRADC_NO_GPU && gpu == NULL);
        EXPECT(strstr(e.text, k == 0 ? "no device 2: the driver (CUDA 13.0) has 2"
                                     : "no device -1: the driver (CUDA 13.0) has 2") != NULL);
    }
    o.struct_size = 4;
    EXPECT(gradc_cuda_open(&o, &gpu, &e) == GRADC_BAD_ABI && gpu == NULL);
    EXPECT(gradc_cuda_open(NULL, NULL, &e) == GRADC_BAD_ARGUMENT);
    unsetenv("GRADC_MOCK_DEVICES");
}

/* ---- what is refused
 * ------------------------------------------------------------------------------- */

static void check_init(const gradc_cuda *gpu)
{
    Block b;
    digits_cuda *g = (digits_cuda *)&b;
    gradc_options o = options(gpu);
    EXPECT(digits_cuda_init(NULL, sizeof b, &o, &g) == GRADC_BAD_ARGUMENT && g == NULL);
    EXPECT(digits_cuda_init(&b, sizeof b, &o, NULL) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_init(&b, sizeof b - 1, &o, &g) == GRADC_TOO_SMALL);
    EXPECT(digits_cuda_init(b.bytes + 8, sizeof b, &o, &g) == GRADC_MISALIGNED);
    EXPECT(digits_cuda_init(&b, sizeof b, NULL, &g) == GRADC_NO_GPU && g == NULL);
    EXPECT(strstr(digits_cuda_error((digits_cuda *)&b), "gradc_options.cuda must be set") != NULL);
    o.cuda = NULL;
    EXPECT(digits_cuda_init(&b, sizeof b, &o, &g) == GRADC_NO_GPU);
    o = options(gpu);
    o.struct_size = 48; /* of a program that knows of no GPU */
    EXPECT(digits_cuda_init(&b, sizeof b, &o, &g) == GRADC_NO_GPU);
    o.struct_size = 8;
    EXPECT(digits_cuda_init(&b, sizeof b, &o, &g) == GRADC_BAD_ABI);
    o = options(gpu);
    o.abi++;
    EXPECT(digits_cuda_init(&b, sizeof b, &o, &g) == GRADC_BAD_ABI);
    gradc_cuda other = *gpu;
    other.tables++;
    o = options(&other);
    EXPECT(digits_cuda_init(&b, sizeof b, &o, &g) == GRADC_BAD_ABI && g == NULL);
    EXPECT(strstr(digits_cuda_error((digits_cuda *)&b), "another version") != NULL);
    EXPECT(strstr(digits_cuda_error(NULL), "NULL") != NULL);
    EXPECT(digits_cuda_close(NULL) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_step(NULL, NULL, NULL) == GRADC_BAD_ARGUMENT);
    memset(&b, 1, sizeof b);
    EXPECT(digits_cuda_step((digits_cuda *)&b, NULL, NULL) == GRADC_BAD_STATE);
}

static void check_arguments(digits_cuda *g)
{
    digits_cuda_inputs in = inputs(0);
    char text[80];
    float loss, w[3];
    in.image = NULL;
    EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_BAD_ARGUMENT);
    EXPECT(strcmp(digits_cuda_error(g), "input image is NULL") == 0);
    in.image = (float *)((char *)image + 1);
    EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_BAD_ARGUMENT);
    EXPECT(strstr(digits_cuda_error(g), "not aligned") != NULL);
    EXPECT(digits_cuda_step(g, NULL, &loss) == GRADC_BAD_ARGUMENT);
    in = inputs(0);
    in.rows = ROWS + 1;
    EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_BAD_ARGUMENT);
    snprintf(text, sizeof text, "rows is %d, but a call takes 1 to %d", ROWS + 1, ROWS);
    EXPECT(strcmp(digits_cuda_error(g), text) == 0);
    in.rows = -1;
    EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_BAD_ARGUMENT);
    in = inputs(0);
    int32_t old = label[0][5];
    label[0][5] = -1;
    EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_RANGE);
    EXPECT(strstr(digits_cuda_error(g), "label: element 5 is -1, outside of 0..10") != NULL);
    label[0][5] = old;
    EXPECT(digits_cuda_read(g, 0, NULL, 4) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_read(g, 0, w, sizeof w) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_read(g, -1, w, sizeof w) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_read(g, DIGITS_CUDA_TENSORS, w, sizeof w) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_set(g, 0, 1) == GRADC_BAD_ARGUMENT);
    EXPECT(digits_cuda_set(g, DIGITS_CUDA_TENSORS, 1) == GRADC_BAD_ARGUMENT);
}

/* Gradients are there after grad() alone; what is written is read again; lr is a scalar. */
static void check_tensors(digits_cuda *g)
{
    size_t n;
    float loss, b[CLASSES], was[CLASSES], lr = 0;
    const gradc_tensor *t = digits_cuda_tensors(g, &n);
    int32_t grad = DIGITS_CUDA_T_grad_fc2_bias, param = digits_cuda_find("fc2.bias"),
            scalar = digits_cuda_find("lr");
    digits_cuda_inputs in = inputs(0);
    EXPECT(n == DIGITS_CUDA_TENSORS && t[grad].of == param && t[scalar].role == GRADC_SCALAR);
    EXPECT(digits_cuda_find("nothing") == -1 && digits_cuda_find(NULL) == -1);
    EXPECT(digits_cuda_read(g, grad, b, sizeof b) == GRADC_BAD_STATE);
    EXPECT(strstr(digits_cuda_error(g), "after digits_cuda_grad only") != NULL);
    EXPECT(digits_cuda_grad(g, &in, &loss) == GRADC_OK);
    EXPECT(digits_cuda_read(g, grad, b, sizeof b) == GRADC_OK && b[0] != 0);
    EXPECT(digits_cuda_write(g, param, b, sizeof b) == GRADC_OK);
    EXPECT(digits_cuda_set(g, scalar, 0.25) == GRADC_OK);
    EXPECT(digits_cuda_read(g, scalar, &lr, sizeof lr) == GRADC_OK && lr == 0.25f);
    EXPECT(digits_cuda_read(g, param, was, sizeof was) == GRADC_OK);
    EXPECT(memcmp(b, was, sizeof b) == 0);
}

/* A step that changes nothing says why, or the next one that waits says that there was one. */
static void check_nonfinite(digits_cuda *g)
{
    digits_cuda_inputs in = inputs(0);
    float loss, old = image[0][7];
    image[0][7] = 1.0f / 0.0f;
    EXPECT(digits_cuda_step(g, &in, &loss) == GRADC_NONFINITE);
    EXPECT(strcmp(digits_cuda_error(g), "the loss is NaN: nothing was changed") == 0 ||
           strcmp(digits_cuda_error(g), "the loss is infinite: nothing was changed") == 0);
    EXPECT(digits_cuda_step(g, &in, NULL) == GRADC_OK);
    image[0][7] = old;
    for (int s = 0; s < STEPS; s++) {
        in = inputs(s);
        EXPECT(digits_cuda_step(g, &in, NULL) == GRADC_OK);
    }
    EXPECT(digits_cuda_wait(g, &loss) == GRADC_NONFINITE && loss == loss);
    EXPECT(strstr(digits_cuda_error(g), "1 of the last 5 calls changed nothing, the first of them "
                                        "number 1:") != NULL);
    EXPECT(digits_cuda_wait(g, &loss) == GRADC_OK);
}

static void contract(void)
{
    Mock m = open_mock();
    gradc_cuda *gpu;
    gradc_error e;
    Block b;
    digits_cuda *g;
    EXPECT(gradc_cuda_open(NULL, &gpu, &e) == GRADC_OK);
    train_on_cpu();
    check_steps(&m, gpu);
    check_queue(&m, gpu);
    check_watch(&m, gpu);
    check_device(&m, gpu);
    check_stream(&m);
    check_choice(&m);
    check_close_beside(gpu);
    check_threads(gpu);
    check_tables(gpu);
    check_nothing(gpu);
    check_init(gpu);
    EXPECT(init(&b, gpu, &g) == GRADC_OK);
    check_arguments(g);
    check_tensors(g);
    check_nonfinite(g);
    EXPECT(digits_cuda_close(g) == GRADC_OK);
    gradc_cuda_close(gpu);
    dlclose(m.library);
}

/* On a GPU, too: nothing here asks the mock. */
static void replay(int steps)
{
    gradc_cuda *gpu;
    gradc_error e;
    Block b[2];
    digits_cuda *g[2];
    float loss[2], weight[2][CLASSES * HIDDEN];
    int status = gradc_cuda_open(NULL, &gpu, &e);
    EXPECT(status == GRADC_OK);
    if (status != GRADC_OK)
        return;
    for (int k = 0; k < 2; k++) {
        EXPECT(init(&b[k], gpu, &g[k]) == GRADC_OK);
        for (int s = 0; s < steps; s++) {
            digits_cuda_inputs in = inputs(s % STEPS);
            status |= digits_cuda_step(g[k], &in, NULL);
        }
        EXPECT(status == GRADC_OK && digits_cuda_wait(g[k], &loss[k]) == GRADC_OK);
        EXPECT(digits_cuda_read(g[k], digits_cuda_find("fc2.weight"), weight[k],
                                sizeof weight[k]) == GRADC_OK);
        EXPECT(digits_cuda_close(g[k]) == GRADC_OK);
    }
    gradc_cuda_close(gpu);
    printf("%d steps twice, loss %.9g and %.9g\n", steps, loss[0], loss[1]);
    EXPECT(loss[0] == loss[1] && memcmp(weight[0], weight[1], sizeof weight[0]) == 0);
}

static int try_open(void)
{
    gradc_cuda *gpu;
    gradc_error e;
    Block b;
    digits_cuda *g;
    int status = gradc_cuda_open(NULL, &gpu, &e);
    if (status != GRADC_OK) {
        printf("%d %s\n", status, e.text);
        return 1;
    }
    status = init(&b, gpu, &g);
    printf("%d %s\n", status, digits_cuda_error((digits_cuda *)&b));
    if (status == GRADC_OK)
        digits_cuda_close(g);
    gradc_cuda_close(gpu);
    return status != GRADC_OK;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_data();
    if (argc == 2 && strcmp(argv[1], "open") == 0)
        return try_open();
    if (argc == 2 && strcmp(argv[1], "contract") == 0)
        contract();
    else if (argc == 2 && strcmp(argv[1], "hollow") == 0)
        hollow();
    else if (argc == 3 && strcmp(argv[1], "sweep") == 0)
        sweep(atol(argv[2]));
    else if (argc == 3 && strcmp(argv[1], "replay") == 0)
        replay(atoi(argv[2]));
    else
        return 2;
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed != 0;
}
