#!/usr/bin/env bash
# The main job, small: trains a U-Net on a synthetic 2-D image set, cut over a 2x2 grid of workers;
# shows that one worker gives the same curve, kills the run once and resumes it, and draws a picture.
#
#   scripts/demo.sh [BUILD_DIR]        everything goes to runs/demo
set -euo pipefail
cd "$(dirname "$0")/.."
tessera=${1:-build}/tessera
out=runs/demo
rm -rf "$out"
mkdir -p "$out"

model=unet2d:base=8,depth=3,classes=3
data=synthetic:samples=72,classes=3
common=("$model" --input 4x1x96x96 --data "$data" --validation-fraction 0.1 --seed 3
  --epochs 12 --optimiser adamw --learning-rate 0.004 --learning-rate-schedule cosine --warmup-steps 8
  --dtype float64) # so that the curves agree in every digit; float32 is faster and drifts apart in the fourth

say() { printf '\n== %s\n' "$*"; }

# Value of a column of the last row of a metrics.csv that has it.
column() { # FILE COLUMN ROW(first|last)
  awk -F, -v name="$2" -v which="$3" '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) c = i; next }
    $c != "" { if (which == "last" || value == "") value = $c }
    END { print value }' "$1"
}

say "Four workers, each a quarter of every image: what will each hold and send?"
"$tessera" plan "$model" --input 4x1x96x96 --space 2x2

say "The same numbers as one worker? (float64, loss, outputs, gradients, weights)"
"$tessera" verify "$model" --input 2x1x96x96 --space 2x2

say "Training on the 2x2 grid; killed after some steps, as a crashed machine would"
"$tessera" train "${common[@]}" --space 2x2 --checkpoint-interval 20 --run "$out/grid" &
pid=$!
# Killed once the first checkpoints are there.
for _ in $(seq 1 600); do
  [ -d "$out/grid/checkpoints/step-000060" ] && break
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
kill -KILL "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
echo "killed; checkpoints: $(ls "$out/grid/checkpoints" | tr '\n' ' ')"

say "The same command again resumes"
"$tessera" train "${common[@]}" --space 2x2 --checkpoint-interval 20 --run "$out/grid" \
  --save-weights "$out/weights.safetensors"

say "One worker, never killed, for comparison"
"$tessera" train "${common[@]}" --run "$out/one"

say "The two curves (training loss; validation IoU)"
awk -F, 'FNR == 1 { ++file; next } { loss[file, $1] = $4; iou[file, $1] = $9; if ($1 > last) last = $1 }
  END { printf "%6s %12s %12s %10s %10s\n", "step", "2x2 grid", "one worker", "IoU grid", "IoU one"
    for (s = 1; s <= last; ++s) if (iou[1, s] != "" || s == 1)
      printf "%6d %12.6f %12.6f %10s %10s\n", s, loss[1, s], loss[2, s],
        iou[1, s] == "" ? "" : sprintf("%.3f", iou[1, s]), iou[2, s] == "" ? "" : sprintf("%.3f", iou[2, s]) }' \
  "$out/grid/metrics.csv" "$out/one/metrics.csv"

say "New images, on the grid: class maps, probabilities, and a picture with the workers' boxes"
"$tessera" predict "$model" --input 1x1x96x96 --space 2x2 --weights "$out/weights.safetensors" \
  --images "$data" --seed 1000 --output "$out/classes.npy" --probabilities "$out/probabilities.npy" \
  --picture "$out/picture.png"
echo "$out/picture.png"

first=$(column "$out/grid/metrics.csv" loss first)
last=$(column "$out/grid/metrics.csv" loss last)
iou=$(column "$out/grid/metrics.csv" mean_iou last)
say "Loss $first -> $last, validation IoU $iou"
awk -v a="$first" -v b="$last" -v iou="$iou" 'BEGIN { exit !(b < 0.6 * a && iou > 0.5) }' ||
  { echo "demo: the network did not learn" >&2; exit 1; }
