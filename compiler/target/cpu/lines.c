/* DWARF line tables: each call of a kernel has the line of the .model that asked
 * for it, each kernel that of its first call. */
#include <string.h>
#include <llvm-c/DebugInfo.h>
#include "model.h"
#include "units.h"

typedef struct Lines {
    Model *m;
    LLVMDIBuilderRef di;
    LLVMMetadataRef unit, type;
    LLVMMetadataRef *file; /* by source */
} Lines;

static LLVMMetadataRef make_file(Lines *l, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t folder = slash != NULL ? (size_t)(slash - path) : 1;
    return LLVMDIBuilderCreateFile(l->di, name, strlen(name), slash != NULL ? path : ".", folder);
}

static LLVMMetadataRef file_of(Lines *l, int32_t source)
{
    if (l->file[source] == NULL)
        l->file[source] = make_file(l, l->m->cx->source.at[source]->path);
    return l->file[source];
}

static void add_flag(Ir *ir, const char *key, unsigned value)
{
    LLVMMetadataRef v = LLVMValueAsMetadata(LLVMConstInt(ir->i32, value, 0));
    LLVMAddModuleFlag(ir->m, LLVMModuleFlagBehaviorWarning, key, strlen(key), v);
}

static void add_flags(Ir *ir)
{
    add_flag(ir, "Debug Info Version", LLVMDebugMetadataVersion());
    add_flag(ir, "Dwarf Version", 4);
}

/* The span nearest to the user: the call path's first one outside of the library. */
static bool place_of(const Ctx *cx, const Origin *o, int32_t *source, int *line)
{
    const Origin *best = NULL;
    for (; o != NULL; o = o->parent) {
        if (o->span.file < 0 || o->span.file >= cx->source.n)
            continue;
        best = o;
        if (!cx->source.at[o->span.file]->library)
            break;
    }
    if (best == NULL)
        return false;
    int column;
    *source = best->span.file;
    source_position(cx->source.at[*source], best->span.from, line, &column);
    return true;
}

bool lines_wanted(const Model *m)
{
    return !m->o->no_lines && m->cx->source.n > 0;
}

const char *lines_place(const Model *m, const Origin *origin, int *line)
{
    int32_t source;
    return place_of(m->cx, origin, &source, line) ? m->cx->source.at[source]->path : NULL;
}

struct Lines *lines_open(Model *m)
{
    if (!lines_wanted(m))
        return NULL;
    Lines *l = NEW(m->arena, Lines);
    l->m = m;
    l->di = LLVMCreateDIBuilder(m->ir.m);
    l->file = NEW_ARRAY(m->arena, LLVMMetadataRef, m->cx->source.n);
    const char *producer = LINES_PRODUCER;
    l->unit = LLVMDIBuilderCreateCompileUnit(
        l->di, LLVMDWARFSourceLanguageC99, file_of(l, 0), producer, strlen(producer), 1, "", 0, 0,
        "", 0, LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
    l->type = LLVMDIBuilderCreateSubroutineType(l->di, file_of(l, 0), NULL, 0, 0);
    add_flags(&m->ir);
    return l;
}

/* The location of `origin`, seen from the function `scope`. */
static LLVMMetadataRef location(Lines *l, LLVMMetadataRef scope, const Origin *origin)
{
    int32_t source;
    int line = (int)LLVMDISubprogramGetLine(scope);
    if (place_of(l->m->cx, origin, &source, &line) &&
        file_of(l, source) != LLVMDIScopeGetFile(scope))
        scope = LLVMDIBuilderCreateLexicalBlockFile(l->di, scope, file_of(l, source), 0);
    return LLVMDIBuilderCreateDebugLocation(l->m->ir.c, (unsigned)line, 0, scope, NULL);
}

void lines_function(struct Lines *l, Lv fn, const char *name, const Origin *origin)
{
    int32_t source = 0;
    int line = 1;
    if (l == NULL || !place_of(l->m->cx, origin, &source, &line))
        return;
    LLVMMetadataRef file = file_of(l, source);
    size_t n = strlen(name);
    LLVMMetadataRef sub = LLVMDIBuilderCreateFunction(
        l->di, file, name, n, name, n, file, (unsigned)line, l->type, 1, 1, (unsigned)line, 0, 1);
    LLVMSetSubprogram(fn, sub);
    LLVMMetadataRef at = location(l, sub, origin);
    for (Lb b = LLVMGetFirstBasicBlock(fn); b != NULL; b = LLVMGetNextBasicBlock(b))
        for (Lv i = LLVMGetFirstInstruction(b); i != NULL; i = LLVMGetNextInstruction(i))
            LLVMInstructionSetDebugLoc(i, at);
    LLVMSetCurrentDebugLocation2(l->m->ir.b, at);
}

void lines_at(struct Lines *l, const Origin *origin)
{
    if (l == NULL)
        return;
    LLVMMetadataRef scope = LLVMGetSubprogram(l->m->ir.fn);
    if (scope != NULL)
        LLVMSetCurrentDebugLocation2(l->m->ir.b, location(l, scope, origin));
}

void lines_frames(Ir *ir)
{
    LLVMDIBuilderRef di = LLVMCreateDIBuilder(ir->m);
    LLVMMetadataRef file = LLVMDIBuilderCreateFile(di, UNIT_SOURCE, strlen(UNIT_SOURCE), "", 0);
    LLVMDIBuilderCreateCompileUnit(di, LLVMDWARFSourceLanguageC99, file, "", 0, 1, "", 0, 0, "", 0,
                                   LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
    add_flags(ir);
    LLVMDIBuilderFinalize(di);
    LLVMDisposeDIBuilder(di);
}

void lines_close(struct Lines *l)
{
    if (l == NULL)
        return;
    LLVMDIBuilderFinalize(l->di);
    LLVMDisposeDIBuilder(l->di);
}
