/* The list of targets. */
#include <string.h>
#include "facts.h"

static const Target *const targets[] = {&target_cpu, &target_cuda};

const Target *target_find(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i]->name, name) == 0)
            return targets[i];
    return NULL;
}

static bool has_storage(Ctx *cx, const Program *p)
{
    const char *wrong = cx->verify ? storage_check(p, &cx->scratch) : NULL;
    if (wrong != NULL)
        diag_error(cx, E0990, NO_SPAN, "program %s: %s", p->name, wrong);
    return wrong == NULL;
}

bool target_emit(Ctx *cx, const Program *p, const TargetOptions *o, ObjectFile *out)
{
    const char *name = o->target != NULL ? o->target : "cpu";
    const Target *t = target_find(name);
    if (t == NULL) {
        Diag *d = diag_error(cx, E0701, NO_SPAN, "there is no target `%s`", name);
        diag_help(cx, d, "targets are: cpu, cuda");
        return false;
    }
    return has_storage(cx, p) && t->emit(cx, p, o, p->arena, out);
}
