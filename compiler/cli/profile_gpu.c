/* Times the launches of an entry on a GPU, beside what its model says. */
#include "../../runtime/gradc.h"
#include "../target/cuda/images.h"
#include "profile.h"

#include <math.h>

static void lap(void *of, int64_t op, double from, double to)
{
    Recorder *r = of;
    if (op >= 0)
        record(r, (int32_t)op, from, to);
    else
        r->p->apart = r->p->apart > 0 ? fmin(to - from, r->p->apart) : to - from;
}

/* Of the model: launches of a row are of one kernel, and limited alike. */
static void count(const Profile *p, ProfileRow *row, const Program *program, int32_t step,
                  double calls)
{
    int32_t i = p->step[step]->kernel;
    const Kernel *k = program->kernel.at[i];
    KCost cost = kernel_cost(k);
    GpuLimit limit;
    row->flops += calls * cost.flops;
    row->bytes += calls * (cost.bytes_read + cost.bytes_written);
    row->best =
        p->gpu == NULL ? -1 : row->best + calls * gpu_time(p->gpu, k, &p->launch[i], &limit);
    row->limit = p->gpu == NULL ? NULL : gpu_limit[limit];
}

int profile_launches(const Cli *c, Session *s, const ProfileRun *run, Profile *to)
{
    Arena *a = &s->arena;
    const Program *program = s->out.program;
    gradc_cuda_device about;
    gradc_cuda_about(s->gpu, &about);
    *to = (Profile){.entry = entry_name((EntryKind)longest_entry(s->model)),
                    .n_calls = run->n_calls,
                    .on_gpu = true,
                    .launch = s->out.object.images->launch,
                    .device = arena_strdup(a, about.name)};
    int status = cli_gpu(c, NULL, &to->gpu);
    if (status != EXIT_OK)
        return status;
    if (to->gpu == NULL)
        to->gpu = gpu_of_device(to->device);
    const Entry *e = program_entry(program, to->entry);
    const LaunchedCalls *launched = &s->out.object.launched[e - program->entry.at];
    to->n_steps = launched->n;
    to->step = launched->call;
    Recorder r = recorder_make(to, a);
    gradc_cuda_watch(s->gpu, lap, &r);
    int st = record_calls(s, &r, run);
    gradc_cuda_watch(s->gpu, NULL, NULL);
    if (st != GRADC_OK)
        return session_failed(s, "bench", st);
    make_rows(c->cx, program, &r, count);
    return EXIT_OK;
}
