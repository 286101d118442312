#!/bin/sh
# Kills `gradc train` at random moments and resumes it, until it has trained to
# the end; the last checkpoint must have the same bits as that of an unbroken run.
#
#   sh tests/kill.sh GRADC [KILLS]         SEED chooses the moments (default 1)
set -u
gradc=${1:-build/gradc}
kills=${2:-20}
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/tally.sh
. "$root/tests/tally.sh"
make_scratch
work=$scratch

cat >"$work/kill.model" <<'END'
use nn

model kill(batch = 32) {
    input image : f32[batch, 64]
    input label : i32[batch] in 0..10

    x = relu(nn.linear(image / 16, 64) as fc1)
    logits = nn.linear(nn.dropout(x, 0.1), 10) as fc2

    loss mean(nn.cross_entropy(logits, label))
}

train kill {
    optimizer adamw(lr = cosine(from = 1e-3, to = 1e-4, steps = 400), weight_decay = 0.01)
}
END

# train CHECKPOINT: becomes a run that begins, or goes on from what is there.
train() {
    exec "$gradc" train "$work/kill.model" --data "$root/examples/data/digits.csv.gz" \
        --seed 7 --epochs "${EPOCHS:-20}" --checkpoint "$1" --checkpoint-every 5 --resume \
        >>"$work/log" 2>&1
}

# Random seconds up to the unbroken run's own, more than enough of them.
moments() {
    awk -v n="$kills" -v seed="${SEED:-1}" -v most="$1" 'BEGIN {
        srand(seed)
        for (i = 0; i < 10 * n; i++) printf "%.3f\n", 0.01 + rand() * most
    }'
}

finish() {
    total
    exit
}

# What goes wrong ends the test.
trouble() {
    tail -n 20 "$work/log"
    fail "kill: $*"
    finish
}

# compare: the run that was killed and resumed has come to the same bits.
compare() {
    cmp "$work/whole.gck" "$work/broken.gck" ||
        trouble "the resumed run ended with other bits"
    rm -f "$work/broken.gck" "$work/broken.gck.prev"
    runs=$((runs + 1))
}

begin=$(date +%s%N)
(train "$work/whole.gck") || trouble "the unbroken run"
took=$(awk -v ns="$(($(date +%s%N) - begin))" 'BEGIN { print ns / 1e9 }')

killed=0 runs=0
for moment in $(moments "$took"); do
    [ "$killed" -lt "$kills" ] || break
    train "$work/broken.gck" &
    child=$!
    sleep "$moment"
    kill -KILL "$child" 2>/dev/null
    wait "$child" 2>/dev/null
    status=$?
    case $status in
    0) compare ;;
    137)
        killed=$((killed + 1))
        if [ -f "$work/broken.gck" ]; then
            "$gradc" inspect "$work/broken.gck" >>"$work/log" 2>&1 ||
                trouble "the checkpoint does not load after a kill at $moment s"
        fi
        ok
        ;;
    *) trouble "training ended with status $status" ;;
    esac
done
[ "$killed" -eq "$kills" ] || trouble "only $killed kills came before the end of a run"
(train "$work/broken.gck") || trouble "the last run does not end"
compare
echo "$killed kills, $runs resumed runs with the bits of the unbroken one ($took s)"
passed=$((passed + runs))
finish
