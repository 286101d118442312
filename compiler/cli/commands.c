#include "cli.h"

const Command commands[] = {
    {"build", "M.model", "compile to an object file and its header", command_build, 1, 1,
     "  gradc build mlp.model -o mlp.o\n"
     "  gradc build gpt.model -D layers=12 --budget 512MiB --emit plan=-\n"},
    {"check", "M.model", "parse, shapes, derivatives; no code", command_check, 1, 1,
     "  gradc check mlp.model\n"},
    {"show", "M.model", "the graph: forward, backward or joint", command_show, 1, 1,
     "  gradc show mlp.model --backward\n"
     "  gradc show mlp.model --kernels --target cuda --gpu h200\n"
     "  gradc show mlp.model --format dot | dot -Tsvg > mlp.svg\n"},
    {"plan", "M.model", "schedule, live ranges and peak memory of each entry", command_plan, 1, 1,
     "  gradc plan mlp.model\n"
     "  gradc plan mlp.model --entry step --format json\n"
     "  gradc plan mlp.model --budget 80% --entry step --format svg > memory.svg\n"
     "  gradc plan mlp.model --entry step --pareto\n"
     "  gradc plan mlp.model --format html > memory.html\n"
     "  gradc plan --diff before.json after.json\n"
     "  gradc plan --problem graph.json --budget 80% --json\n"
     "  gradc plan --placement buffers.csv --capacity 1MiB -o offsets.csv\n"},
    {"explain", "E0203 | nn.linear | M.model TENSOR",
     "what a diagnostic means; a definition of the library; why a tensor is kept", command_explain,
     1, 2,
     "  gradc explain E0203\n"
     "  gradc explain mlp.model logits\n"},
    {"run", "M.model", "compile in memory and evaluate once", command_run, 1, 1,
     "  gradc run square.model --in x=3\n"
     "  gradc run mlp.model --weights w.safetensors --in x=x.npy --grads-out g.safetensors\n"},
    {"train", "M.model", "compile in memory and train now", command_train, 1, 1,
     "  gradc train digits.model --data digits.csv.gz --epochs 20\n"
     "  gradc train gpt.model --data text=input.txt --steps 2000 --checkpoint gpt.gck\n"},
    {"test", "M.model",
     "this model's gradients against differences, the object's bits against the interpreter",
     command_test, 1, 1, "  gradc test mlp.model\n"},
    {"bench", "M.model", "time of a step, memory, size", command_bench, 1, 1,
     "  gradc bench mlp.model --threads 2 --json\n"
     "  gradc bench mlp.model --threads 1 --profile --emit trace=mlp.trace\n"},
    {"inspect", "FILE", "what is in a weights, array or checkpoint file", command_inspect, 1, 1,
     "  gradc inspect w.safetensors\n"},
    {"doctor", "", "what this machine has", command_doctor, 0, 0,
     "  gradc doctor\n"
     "  gradc doctor --calibrate -o machine.json\n"},
    {"fmt", "M.model", "canonical layout of a model", command_fmt, 1, 1,
     "  gradc fmt mlp.model -o mlp.model\n"},
};
const int n_commands = sizeof commands / sizeof *commands;
