/* A model with its files: which definitions there are, what -D changes, what is pinned. */
#include "eval.h"

#include <stdio.h>
#include <string.h>

#include "embedded.h"

/* ---- maps ---------------------------------------------------------------- */

static uint64_t hash_pointer(const void *p)
{
    return hash_mix((uint64_t)(uintptr_t)p);
}

static int map_place(const NameMap *map, const char *key)
{
    int i = (int)(hash_pointer(key) & (uint64_t)(map->cap - 1));
    while (map->key[i] != NULL && map->key[i] != key)
        i = (i + 1) & (map->cap - 1);
    return i;
}

int32_t map_get(const NameMap *map, const char *key)
{
    if (map->cap == 0)
        return -1;
    int i = map_place(map, key);
    return map->key[i] == NULL ? -1 : map->value[i];
}

static void map_grow(Arena *a, NameMap *map)
{
    NameMap old = *map;
    map->cap = old.cap == 0 ? 64 : old.cap * 2;
    map->key = NEW_ARRAY(a, const char *, map->cap);
    map->value = NEW_ARRAY(a, int32_t, map->cap);
    for (int i = 0; i < old.cap; i++)
        if (old.key[i] != NULL) {
            int to = map_place(map, old.key[i]);
            map->key[to] = old.key[i];
            map->value[to] = old.value[i];
        }
}

void map_set(Arena *a, NameMap *map, const char *key, int32_t value)
{
    if (2 * map->n >= map->cap)
        map_grow(a, map);
    int i = map_place(map, key);
    map->n += map->key[i] == NULL;
    map->key[i] = key;
    map->value[i] = value;
}

/* ---- origins ------------------------------------------------------------- */

static uint64_t origin_hash(const Origin *o)
{
    uint64_t h =
        hash_pointer(o->parent) ^ hash_mix((uint64_t)o->span.from << 32 | (uint32_t)o->span.to);
    h = hash_mix(h + (uint64_t)o->span.file) ^ hash_pointer(o->name);
    if (o->part != NULL)
        h = hash_mix(h + (uint64_t)o->part->id + 1);
    return o->memory == MEMORY_PLANNED ? h : hash_mix(h + (uint64_t)o->memory);
}

static int origin_place(const Origins *t, const Origin *o)
{
    int i = (int)(origin_hash(o) & (uint64_t)(t->cap - 1));
    for (; t->slot[i] != NULL; i = (i + 1) & (t->cap - 1)) {
        const Origin *x = t->slot[i];
        if (x->parent == o->parent && x->name == o->name && x->span.from == o->span.from &&
            x->span.to == o->span.to && x->span.file == o->span.file && x->memory == o->memory &&
            x->part == o->part)
            break;
    }
    return i;
}

static void origins_grow(Arena *a, Origins *t)
{
    Origins old = *t;
    t->cap = old.cap == 0 ? 1024 : old.cap * 2;
    t->slot = NEW_ARRAY(a, const Origin *, t->cap);
    for (int i = 0; i < old.cap; i++)
        if (old.slot[i] != NULL)
            t->slot[origin_place(t, old.slot[i])] = old.slot[i];
}

const Origin *origin_at(Model *m, Span span, const Origin *parent, const char *name)
{
    return origin_find(m, (Origin){.span = span, .parent = parent, .name = name});
}

const Origin *origin_find(Model *m, Origin o)
{
    Origins *t = &m->origins;
    if (2 * t->n >= t->cap)
        origins_grow(&m->cx->perm, t);
    int i = origin_place(t, &o);
    if (t->slot[i] == NULL) {
        Origin *made = NEW(&m->cx->perm, Origin);
        *made = o;
        t->slot[i] = made;
        t->n++;
    }
    return t->slot[i];
}

/* ---- files --------------------------------------------------------------- */

const Item *module_item(const Module *in, const char *name)
{
    int32_t i = map_get(&in->item_at, name);
    return i < 0 ? NULL : in->ast->item.at[i];
}

static void find_items(Arena *a, Module *in)
{
    for (int i = in->ast->item.n - 1; i >= 0; i--) {
        const Item *item = in->ast->item.at[i];
        if (item->kind != ITEM_USE && item->kind != ITEM_TRAIN)
            map_set(a, &in->item_at, item->name.text, i); /* of two, the first */
    }
}

static Module *module_add(Model *m, const char *name, const Ast *ast, bool library)
{
    Module *new = NEW(m->arena, Module);
    new->name = intern(&m->cx->names, name);
    new->ast = ast;
    new->library = library;
    find_items(m->arena, new);
    vec_push(m->arena, &m->module, new);
    return new;
}

static Module *module_known(const Model *m, const char *name)
{
    for (int i = 0; i < m->module.n; i++)
        if (strcmp(m->module.at[i]->name, name) == 0)
            return m->module.at[i];
    return NULL;
}

/* BudgetPart of gradc: parsed once for each model that uses it. */
static Module *library_module(Model *m, const char *name)
{
    for (const LibraryFile *f = library_file; f->name != NULL; f++) {
        if (strcmp(f->name, name) != 0)
            continue;
        const char *path = arena_printf(&m->cx->perm, "%s.model", name);
        const Ast *ast = parse(m->cx, source_add(m->cx, path, f->text, f->bytes, true));
        return ast == NULL ? NULL : module_add(m, name, ast, true);
    }
    return NULL;
}

/* From the comment lines above `at` on. */
static size_t comment_start(const char *text, size_t at)
{
    while (at > 0) {
        size_t line = at - 1;
        while (line > 0 && text[line - 1] != '\n')
            line--;
        if (text[line] != '#')
            break;
        at = line;
    }
    return at;
}

const char *library_definition(Ctx *cx, const char *name)
{
    const char *dot = strchr(name, '.'), *own = dot == NULL ? name : dot + 1;
    const char *file =
        dot == NULL ? "prelude" : arena_strndup(&cx->perm, name, (size_t)(dot - name));
    for (const LibraryFile *f = library_file; f->name != NULL; f++) {
        if (strcmp(f->name, file) != 0)
            continue;
        const Ast *ast = parse(cx, source_add(cx, f->name, f->text, f->bytes, true));
        for (int i = 0; ast != NULL && i < ast->item.n; i++) {
            const Item *item = ast->item.at[i];
            if (item->kind == ITEM_USE || strcmp(item->name.text, own) != 0)
                continue;
            size_t from = comment_start(f->text, (size_t)item->span.from);
            return arena_strndup(&cx->perm, f->text + from, (size_t)item->span.to - from);
        }
    }
    return NULL;
}

/* `use NAME`: NAME.model in the folder of the file that says so. */
static const char *beside(Ctx *cx, int32_t source, const char *name)
{
    const char *path = cx->source.at[source]->path;
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    return arena_printf(&cx->perm, "%.*s%s.model", folder, path, name);
}

static char *read_file(Arena *a, const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    char *text = arena_array(a, MAX_SOURCE_BYTES + 2, 1);
    *bytes = fread(text, 1, MAX_SOURCE_BYTES + 1, f);
    bool failed = ferror(f) != 0;
    fclose(f);
    return failed ? NULL : text;
}

static Module *file_module(Model *m, const Item *use, int32_t from)
{
    const char *path = beside(m->cx, from, use->name.text);
    ArenaMark mark = arena_mark(&m->cx->scratch);
    size_t bytes;
    char *text = read_file(&m->cx->scratch, path, &bytes);
    const Ast *ast = NULL;
    if (text == NULL) {
        Diag *d =
            diag_error(m->cx, E0123, use->name.span, "there is no `%s` to use", use->name.text);
        diag_help(m->cx, d, "gradc has `nn`; other files are looked for beside this one: %s", path);
    } else {
        ast = parse(m->cx, source_add(m->cx, path, text, bytes, false));
    }
    arena_reset(&m->cx->scratch, mark);
    return ast == NULL ? NULL : module_add(m, use->name.text, ast, false);
}

/* Reads what the file uses, and what that uses. */
static bool open_uses(Model *m, const Module *of)
{
    bool all = true;
    for (int i = 0; i < of->ast->item.n; i++) {
        const Item *item = of->ast->item.at[i];
        if (item->kind != ITEM_USE || module_known(m, item->name.text) != NULL)
            continue;
        const Module *new = library_module(m, item->name.text);
        if (new == NULL)
            new = file_module(m, item, of->ast->source);
        all = new != NULL &&open_uses(m, new) && all;
    }
    return all;
}

Module *module_find(Model *m, const Module *from, const char *name)
{
    for (int i = 0; i < from->ast->item.n; i++) {
        const Item *item = from->ast->item.at[i];
        if (item->kind == ITEM_USE && item->name.text == name)
            return module_known(m, name);
    }
    return NULL;
}

/* ---- constants of files -------------------------------------------------- */

static ConstDef *constant_of(Model *m, Module *in, const Item *item)
{
    for (int i = 0; i < in->constant.n; i++)
        if (in->constant.at[i].item == item)
            return &in->constant.at[i];
    vec_push(m->arena, &in->constant, ((ConstDef){.item = item}));
    return &in->constant.at[in->constant.n - 1];
}

/* Constants outlive the run that computes them. */
static const Value *keep_value(Model *m, const Value *v)
{
    Value *copy = NEW(m->arena, Value);
    *copy = *v;
    if (v->kind == VALUE_TUPLE || v->kind == VALUE_LIST || v->kind == VALUE_ALL_BUT) {
        const Value **item = NEW_ARRAY(m->arena, const Value *, v->n);
        for (int i = 0; i < v->n; i++)
            item[i] = keep_value(m, v->item[i]);
        copy->item = item;
    }
    return copy;
}

const Value *module_constant(Build *b, Module *in, const Item *item)
{
    ConstDef *c = constant_of(b->m, in, item);
    if (c->value != NULL)
        return c->value;
    if (c->busy) {
        complain(b, E0902, item->name.span, "the constant `%s` depends on itself", item->name.text);
        return &value_poison;
    }
    c->busy = true;
    Scope scope = {0};
    Frame frame = *b->frame, *caller = b->frame;
    frame.scope = &scope;
    frame.module = in;
    b->frame = &frame;
    const Value *v = eval(b, item->value);
    b->frame = caller;
    if (!value_is_const(v)) {
        complain(b, E0207, item->value->span, "a constant of a file can't be a tensor");
        v = &value_poison;
    }
    c = constant_of(b->m, in, item); /* the array may have moved */
    c->busy = false;
    c->value = v->kind == VALUE_POISON ? &value_poison : keep_value(b->m, v);
    return c->value;
}

/* ---- arguments ----------------------------------------------------------- */

static bool same_kind(const Value *is, const Value *given)
{
    if (value_is_items(is))
        return value_is_items(given);
    return is->kind == given->kind || (is->kind == VALUE_FLOAT && given->kind == VALUE_INT);
}

/* The value of -D name=text, read by the language's own parser. */
static const Value *define_value(Build *b, const Define *d)
{
    const char *path = arena_printf(&b->cx->perm, "-D %s", d->name);
    const char *text = arena_printf(&b->cx->perm, "const value = %s\n", d->value);
    const Ast *ast = parse(b->cx, source_add(b->cx, path, text, strlen(text), false));
    if (ast == NULL || ast->item.n != 1 || ast->item.at[0]->kind != ITEM_CONST)
        return &value_poison;
    return eval(b, ast->item.at[0]->value);
}

static const Value *model_arg(Build *b, const Arg *a, const Define *d)
{
    const Value *v = eval(b, a->value);
    if (d == NULL || v->kind == VALUE_POISON)
        return v;
    const Value *given = define_value(b, d);
    if (given->kind == VALUE_POISON || same_kind(v, given))
        return given;
    Diag *bad = diag_error(b->cx, E0127, a->span, "`%s` is %s, but -D %s=%s gives %s", d->name,
                           value_kind_text(v), d->name, d->value, value_kind_text(given));
    bad->origin = NULL;
    return &value_poison;
}

static bool unknown_define(Model *m, const Define *d)
{
    const char *name[MAX_DEFINES];
    const Args *arg = &m->item->def.arg;
    int n = 0;
    for (; n < arg->n && n < MAX_DEFINES; n++)
        name[n] = arg->at[n].name.text;
    for (int i = 0; i < n; i++)
        if (strcmp(name[i], d->name) == 0)
            return false;
    Diag *bad =
        diag_error(m->cx, E0126, m->item->name.span, "`%s` has no argument `%s` for -D %s=%s",
                   m->item->name.text, d->name, d->name, d->value);
    const char *near = nearest(d->name, name, n);
    if (near != NULL)
        diag_help(m->cx, bad, "did you mean `%s`?", near);
    return true;
}

static const Define *define_of(const Define *d, int n, const char *name)
{
    for (int i = n - 1; i >= 0; i--) /* the last one given counts */
        if (strcmp(d[i].name, name) == 0)
            return &d[i];
    return NULL;
}

/* `batch` is divided by `split`, and with it what is computed from it. */
static bool model_args(Model *m, const Define *d, int n, int64_t split, ModelArgs *to)
{
    Graph *g = graph_new(m->cx, "arguments");
    Build b = build_begin(m, ENTRY_INIT, g);
    Scope scope = {0};
    Instance top = {.prefix = ""};
    Frame frame = {
        .module = m->own, .item = m->item, .scope = &scope, .instance = &top, .call = NO_SPAN};
    b.frame = &frame;
    for (int i = 0; i < n && split == 1; i++)
        unknown_define(m, &d[i]);
    for (int i = 0; i < m->item->def.arg.n; i++) {
        const Arg *a = &m->item->def.arg.at[i];
        const Value *v = model_arg(&b, a, define_of(d, n, a->name.text));
        if (v->kind != VALUE_POISON && !value_is_const(v))
            complain(&b, E0207, a->span, "an argument of a model can't be a tensor");
        bool batch = strcmp(a->name.text, "batch") == 0 && v->kind == VALUE_INT && v->i > 0;
        if (batch)
            m->batch = v->i / split;
        if (batch)
            v = value_rows(&b.arena, m->batch);
        else if (v->kind == VALUE_INT) /* (n = batch), or -D n=8 */
            v = value_int(&b.arena, v->i);
        bind(&b, a->name, v, BIND_LOCAL);
        vec_push(m->arena, to, ((ModelArg){a->name.text, a->name.span, keep_value(m, v)}));
    }
    bool fine = m->cx->n_errors == b.n_errors;
    build_end(&b);
    graph_free(g);
    return fine;
}

/* ---- opening ------------------------------------------------------------- */

static const Item *choose(Ctx *cx, const Ast *ast, const char *name)
{
    const Item *chosen = NULL;
    const char *names[MAX_DEFINES];
    int n = 0;
    for (int i = 0; i < ast->item.n; i++) {
        const Item *item = ast->item.at[i];
        if (item->kind != ITEM_MODEL)
            continue;
        if (n < MAX_DEFINES)
            names[n++] = item->name.text;
        if (name == NULL || strcmp(item->name.text, name) == 0)
            chosen = item;
    }
    if (chosen != NULL)
        return chosen;
    Span start = {ast->source, 0, 0};
    if (name == NULL) {
        diag_help(cx, diag_error(cx, E0124, start, "there is no model in this file"),
                  "a model begins `model NAME(batch = 64) {`");
        return NULL;
    }
    Diag *d = diag_error(cx, E0124, start, "there is no model `%s` in this file", name);
    const char *near = nearest(name, names, n);
    if (near != NULL)
        diag_help(cx, d, "did you mean `%s`?", near);
    return NULL;
}

static bool both_args(Model *m, const Define *d, int n)
{
    bool fine = model_args(m, d, n, 1, &m->whole_arg);
    if (fine && m->split > 1)
        return model_args(m, d, n, m->split, &m->arg);
    m->arg = m->whole_arg;
    return fine;
}

Model *model_open_named(Ctx *cx, const Ast *ast, const char *name, const Define *d, int n,
                        int64_t split, Arena *arena)
{
    const Item *item = choose(cx, ast, name);
    if (item == NULL)
        return NULL;
    Model *m = NEW(arena, Model);
    m->cx = cx;
    m->arena = arena;
    m->item = item;
    m->split = split > 1 ? split : 1;
    m->pinned.arena = arena;
    m->pinned.step_counter = m->pinned.skipped_counter = -1;
    m->pinned.seed = m->pinned.rows = m->lr = -1;
    m->own = module_add(m, "", ast, false);
    m->prelude = library_module(m, "prelude");
    m->train_library = library_module(m, "train");
    if (m->prelude == NULL || m->train_library == NULL || !open_uses(m, m->own))
        return NULL;
    if (!both_args(m, d, n) || !train_open(m))
        return NULL;
    for (int i = 0; i < m->module.n; i++)
        if (!m->module.at[i]->library)
            warn_unused(cx, m->module.at[i]->ast);
    return m;
}

Model *model_open(Ctx *cx, const Ast *ast, const Define *d, int n, Arena *arena)
{
    return model_open_named(cx, ast, NULL, d, n, 1, arena);
}

/* ---- what others ask ----------------------------------------------------- */

const Pinned *model_pinned(const Model *m)
{
    return &m->pinned;
}

Pinned *model_storage(Model *m)
{
    return &m->pinned;
}

int64_t model_accumulate(const Model *m)
{
    return m->train.accumulate;
}

Precision model_precision(const Model *m)
{
    return m->train.precision;
}

bool model_guard_loss(Model *m)
{
    bool less = m->train.guard == GUARD_GRADIENTS;
    if (less)
        m->train.guard = GUARD_LOSS;
    return less;
}

void model_set_precision(Model *m, DType type)
{
    if (m->train.precision.type != type)
        precision_find(dtype_name(type), &m->train.precision);
}

int32_t model_n_parts(const Model *m)
{
    return m->part.n;
}

BudgetPart *model_part(const Model *m, int32_t i)
{
    return m->part.at[i];
}

int64_t model_batch(const Model *m)
{
    return m->batch * m->split;
}

int64_t model_split(const Model *m)
{
    return m->split;
}

int64_t model_loops(const Model *m, EntryKind e)
{
    return e == ENTRY_INIT ? 1 : e == ENTRY_EVAL ? m->split : m->train.accumulate * m->split;
}

bool model_trains(const Model *m)
{
    return m->train.item != NULL;
}

const char *model_name(const Model *m)
{
    return m->item->name.text;
}

const char *model_doc(const Model *m)
{
    return m->item->doc;
}

const char *model_train_doc(const Model *m)
{
    return m->train.item != NULL ? m->train.item->doc : NULL;
}

const char *model_result_doc(const Model *m, const char *name)
{
    for (int i = 0; i < m->documented.n; i++)
        if (strcmp(m->documented.at[i].name, name) == 0)
            return m->documented.at[i].doc;
    return NULL;
}

int32_t model_slot(Model *m, const char *name, SlotKind kind, const Type *t, const Origin *o)
{
    name = intern(&m->cx->names, name);
    int32_t slot = map_get(&m->slots, name);
    if (slot >= 0)
        return slot;
    slot = pinned_add(&m->pinned, name, kind, *t, o);
    map_set(m->arena, &m->slots, name, slot);
    vec_push(m->arena, &m->init, ((Init){.kind = INIT_FILL}));
    return slot;
}

/* ---- identity ------------------------------------------------------------ */

/* What the hash is of: everything that decides shapes, names and arithmetic. */
static void describe(const Model *m, Text *t)
{
    for (int i = 0; i < m->module.n; i++)
        ast_print(t, m->module.at[i]->ast);
    text_add(t, "model %s\n", m->item->name.text);
    for (int i = 0; i < m->whole_arg.n; i++)
        text_add(t, "%s = %s\n", m->whole_arg.at[i].name,
                 value_text(t->arena, m->whole_arg.at[i].value));
    if (m->train.precision.type != F32) /* given, it may be, outside of the text */
        text_add(t, "precision %s, %g\n", dtype_name(m->train.precision.type),
                 m->train.precision.loss_scale);
    for (int i = 0; i < m->pinned.slot.n; i++) {
        const Slot *s = &m->pinned.slot.at[i];
        if (s->kind == SLOT_PARAM || s->kind == SLOT_STATE)
            text_add(t, "%s : %s\n", s->name, type_text(t->arena, &s->type));
    }
}

void model_hash(const Model *m, char hex[65])
{
    ArenaMark mark = arena_mark(&m->cx->scratch);
    Text t;
    text_init(&t, &m->cx->scratch);
    describe(m, &t);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t h = hash_mix(hash_bytes(hash_mix(HASH_START + i), t.at, t.n));
        snprintf(hex + (size_t)16 * i, 17, "%016llx", (unsigned long long)h);
    }
    arena_reset(&m->cx->scratch, mark);
}
