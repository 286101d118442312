#!/bin/sh
# The large counts, which take hours: each part is a stage of tests/stages with
# other numbers. Prints a summary; the last output, of all or of its parts, is tests/full.txt.
#
#   sh tests/full.sh                  everything, one shard
#   SHARD=1/4 sh tests/full.sh        a quarter of it: its own seeds, a share of the counts
#   SEED=7 sh tests/full.sh           other seeds
#
# What a stage reads:   (in every run)   here
#   FUZZ_RUNS                 20,000     1,000,000   executions of each fuzz target
#   KILLS                         20           200   kills of a training run
#   RANDOM_MODELS                250         5,000   random models
#   WORK_MODELS                  400        20,000   models whose kernels' operations are counted
#   NETS                          16         2,000   nets, for several processors
#   JAX_MODELS                    20           300   judged by JAX
#   MUTATIONS                    500         5,000   edits of the examples
#   BOUND_GRAPHS                  12           500   graphs whose bounds HiGHS judges
#   PLANNED_PROBLEMS              25        17,000   bare problems, each within six budgets
#   SEED                           1             1   of everything drawn
#   GRADC_FULL                     -             1   whatever has no number: all of it
set -u
cd "$(dirname "$0")/.." || exit 3

shard=${SHARD:-1/1}
i=${shard%/*} n=${shard#*/}
case $i$n in
*[!0-9]*)
    echo "full.sh: SHARD is I/N, as in 1/4" >&2
    exit 2
    ;;
esac

# share COUNT: this shard's part, rounded up.
share() {
    echo $((($1 + n - 1) / n))
}

FUZZ_RUNS=$(share "${FUZZ_RUNS:-1000000}")
KILLS=$(share "${KILLS:-200}")
RANDOM_MODELS=$(share "${RANDOM_MODELS:-5000}")
WORK_MODELS=$(share "${WORK_MODELS:-20000}")
NETS=$(share "${NETS:-2000}")
JAX_MODELS=$(share "${JAX_MODELS:-300}")
MUTATIONS=$(share "${MUTATIONS:-5000}")
BOUND_GRAPHS=$(share "${BOUND_GRAPHS:-500}")
PLANNED_PROBLEMS=$(share "${PLANNED_PROBLEMS:-17000}")
SEED=$((${SEED:-1} + 1000 * (i - 1)))
GRADC_FULL=1 STAGE_MINUTES=${STAGE_MINUTES:-600}
export FUZZ_RUNS KILLS RANDOM_MODELS WORK_MODELS NETS JAX_MODELS MUTATIONS BOUND_GRAPHS PLANNED_PROBLEMS
export SEED GRADC_FULL STAGE_MINUTES

mkdir -p build
out=build/full-$i-of-$n.txt
{
    echo "tests/full.sh, shard $shard, seed $SEED, $(date -u +%Y-%m-%d), $(git rev-parse --short HEAD 2>/dev/null)"
    sed -n 's/^model name[^:]*: */CPU: /p' /proc/cpuinfo | head -n 1
    echo "FUZZ_RUNS=$FUZZ_RUNS KILLS=$KILLS RANDOM_MODELS=$RANDOM_MODELS WORK_MODELS=$WORK_MODELS" \
        "NETS=$NETS JAX_MODELS=$JAX_MODELS MUTATIONS=$MUTATIONS BOUND_GRAPHS=$BOUND_GRAPHS" \
        "PLANNED_PROBLEMS=$PLANNED_PROBLEMS"
    sh tests/run.sh "$@"
} 2>&1 | tee "$out"
last=$(tail -n 1 "$out")
if [ "$shard" = 1/1 ] && [ $# -eq 0 ]; then
    cp "$out" tests/full.txt
else
    echo "full.sh: kept as $out" >&2
fi
case $last in
*" 0 failed"*) exit 0 ;;
esac
exit 1
