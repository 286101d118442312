#include "object.h"
const Target target_cpu = {.name = "cpu"};
