/* A program's calls of a CUDA object, again and again: each call of the driver fails once. */
#include "host.h"

/* A caller's memory on the device, of a sweep. */
static float lent_image[ROWS * PIXELS], lent_logits[ROWS * CLASSES];
static int32_t lent_label[ROWS];

static void lend(const Mock *m)
{
    memcpy(lent_image, image[0], sizeof lent_image);
    memcpy(lent_label, label[0], sizeof lent_label);
    m->lend(lent_image, sizeof lent_image);
    m->lend(lent_logits, sizeof lent_logits);
    m->lend(lent_label, sizeof lent_label);
}

/* Some rows of a batch that is there, and outputs there. Nobody writes to the loss later. */
static int live_on_device(digits_cuda *g)
{
    float loss;
    digits_cuda_inputs in = {.rows = 3, .image = lent_image, .label = lent_label};
    int status = digits_cuda_step(g, &in, &loss);
    in.label = NULL;
    return status == GRADC_OK
               ? digits_cuda_eval(g, &in, &(digits_cuda_outputs){.logits = lent_logits})
               : status;
}

static int put(digits_cuda *g, const char *name, const float *x, size_t n)
{
    return digits_cuda_write(g, digits_cuda_find(name), x, n * sizeof *x);
}

/* A step whose loss is finite and whose gradients are not: the first of them is looked for. */
static int live_refused(digits_cuda *g)
{
    static float none[HIDDEN * PIXELS], little[HIDDEN], huge[CLASSES * HIDDEN],
        bright[ROWS * PIXELS];
    float loss;
    for (int i = 0; i < HIDDEN; i++)
        little[i] = 1e-30f;
    for (int i = 0; i < CLASSES * HIDDEN; i++)
        huge[i] = i / HIDDEN % 2 == 0 ? 3e38f : -3e38f;
    for (int i = 0; i < ROWS * PIXELS; i++)
        bright[i] = 1e6f;
    int status = put(g, "fc1.weight", none, HIDDEN * PIXELS);
    if (status == GRADC_OK)
        status = put(g, "fc1.bias", little, HIDDEN);
    if (status == GRADC_OK)
        status = put(g, "fc2.weight", huge, CLASSES * HIDDEN);
    digits_cuda_inputs in = {.image = bright, .label = label[0]};
    if (status == GRADC_OK)
        status = digits_cuda_step(g, &in, &loss);
    if (status != GRADC_NONFINITE)
        return status;
    EXPECT(strstr(digits_cuda_error(g), "the gradient fc") != NULL);
    return GRADC_OK;
}

/* All that a program does; gives the first status that is not GRADC_OK. The handle is closed, and
 * says something, whatever has happened. */
static int live(gradc_cuda **gpu, char *text, size_t room)
{
    gradc_error e = {0};
    Block b;
    digits_cuda *g = NULL;
    float loss, logits[ROWS * CLASSES], bias[CLASSES];
    digits_cuda_inputs in = inputs(0);
    int status = gradc_cuda_open(NULL, gpu, &e);
    snprintf(text, room, "%s", e.text);
    if (status != GRADC_OK)
        return status;
    status = init(&b, *gpu, &g);
    snprintf(text, room, "%s", digits_cuda_error((digits_cuda *)&b));
    if (status != GRADC_OK)
        return g == NULL ? status : -1;
    for (int s = 0; s < 3 && status == GRADC_OK; s++)
        status = digits_cuda_step(g, &in, NULL);
    if (status == GRADC_OK)
        status = digits_cuda_wait(g, &loss);
    if (status == GRADC_OK)
        status = digits_cuda_step(g, &in, &loss);
    Watched w = {.in_order = true};
    gradc_cuda_watch(*gpu, watched, &w);
    if (status == GRADC_OK)
        status = digits_cuda_step(g, &in, &loss);
    gradc_cuda_watch(*gpu, NULL, NULL);
    if (status == GRADC_OK)
        status = digits_cuda_set(g, digits_cuda_find("lr"), 0.1);
    if (status == GRADC_OK)
        status = digits_cuda_read(g, digits_cuda_find("fc2.bias"), bias, sizeof bias);
    if (status == GRADC_OK)
        status = digits_cuda_write(g, digits_cuda_find("fc2.bias"), bias, sizeof bias);
    if (status == GRADC_OK)
        status = digits_cuda_eval(g, &in, &(digits_cuda_outputs){.logits = logits});
    if (status == GRADC_OK)
        status = live_on_device(g);
    if (status == GRADC_OK)
        status = live_refused(g);
    snprintf(text, room, "%s", digits_cuda_error(g));
    if (status != GRADC_OK) { /* it stays as it is: the same status, the same words */
        EXPECT(digits_cuda_step(g, &in, NULL) == status);
        EXPECT(strcmp(text, digits_cuda_error(g)) == 0);
    }
    int closed = digits_cuda_close(g);
    if (status == GRADC_OK)
        snprintf(text, room, "%s", digits_cuda_error(g));
    return status == GRADC_OK ? closed : status;
}

/* What failed is told by a status that fits the code, in a sentence that has it and the versions.
 */
static void check_told(int status, const char *text, long code, long at)
{
    char number[32];
    snprintf(number, sizeof number, ", %ld)", code);
    int expected = code == 2 ? GRADC_MEMORY : code == 100 ? GRADC_NO_GPU : GRADC_DEVICE;
    bool fits = status == expected || status == GRADC_NO_GPU;
    bool told = strstr(text, number) != NULL && strstr(text, "CUDA 1") != NULL;
    bool missing = code == 2 && strstr(text, "are missing") != NULL;
    bool early = status == GRADC_NO_GPU && strstr(text, "does not start") != NULL;
    if (!fits || !(told || missing || early))
        printf("call %ld, code %ld: status %d: %s\n", at, code, status, text);
    EXPECT(fits && (told || missing || early));
}

/* Nobody needs to know that this has failed. */
static bool gives_back(const char *call)
{
    return strstr(call, "cuCtxP") != NULL || strstr(call, "Destroy") != NULL ||
           strstr(call, "Free") != NULL || strstr(call, "Unload") != NULL ||
           strstr(call, "Release") != NULL;
}

/* The call is to give something without which nothing goes on. `attributes`: how many have been
 * asked for; the second one is the minor version, of which 0 is one. */
static bool must_give(const char *call, int *attributes)
{
    static const char *const gives[] = {
        "Retain",     "Alloc",  "ModuleGetF", "Load",     "StreamCreate", "Instantiate",
        "EndCapture", "EventC", "GetVersion", "GetCount", "Elapsed",
    };
    if (strstr(call, "DeviceGetAttribute") != NULL)
        return ++*attributes == 1;
    for (size_t i = 0; i < sizeof gives / sizeof *gives; i++)
        if (strstr(call, gives[i]) != NULL)
            return true;
    return false;
}

/* Each call that is to give something gives nothing, and says that it has. */
void hollow(void)
{
    Mock m = open_mock();
    gradc_cuda *gpu = NULL;
    char text[1000];
    int attributes = 0;
    m.fail(0, 0);
    EXPECT(live(&gpu, text, sizeof text) == GRADC_OK);
    gradc_cuda_close(gpu);
    long all = m.calls();
    for (long n = 1; n <= all; n++) {
        m.fail(n, 0);
        int status = live(&gpu, text, sizeof text);
        gradc_cuda_close(gpu);
        bool told = must_give(m.failed(), &attributes);
        if ((status != GRADC_OK) != told || (told && text[0] == 0))
            printf("%s gave nothing: status %d: %s\n", m.failed(), status, text);
        EXPECT((status != GRADC_OK) == told && (!told || text[0] != 0));
    }
    EXPECT(attributes == 2);
    m.fail(0, 0);
    EXPECT(live(&gpu, text, sizeof text) == GRADC_OK);
    gradc_cuda_close(gpu);
    dlclose(m.library);
}

void sweep(long code)
{
    Mock m = open_mock();
    gradc_cuda *gpu = NULL;
    char text[1000];
    lend(&m);
    m.fail(0, 0);
    EXPECT(live(&gpu, text, sizeof text) == GRADC_OK);
    gradc_cuda_close(gpu);
    long all = m.calls(), silent = 0;
    for (long n = 1; n <= all; n++) {
        m.fail(n, code);
        int status = live(&gpu, text, sizeof text);
        gradc_cuda_close(gpu);
        if (status != GRADC_OK)
            check_told(status, text, code, n);
        else if (gives_back(m.failed()))
            silent++;
        else
            EXPECT(!"a failure that nobody hears of");
        m.fail(0, 0);
        EXPECT(live(&gpu, text, sizeof text) == GRADC_OK); /* a second time it works */
        gradc_cuda_close(gpu);
    }
    printf("%ld calls, %ld of them fail without a consequence\n", all, silent);
    dlclose(m.library);
}
