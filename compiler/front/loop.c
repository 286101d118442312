#include "eval.h"
const Value *eval_scan(Build *b, const Expr *e)
{
    complain(b, E0990, e->span, "scan");
    return &value_poison;
}
