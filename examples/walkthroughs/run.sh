#!/usr/bin/env bash
# The walk-throughs of docs/walkthroughs.md, each in minutes on 2 cores.
#
#   examples/walkthroughs/run.sh brain|retina|mnist [PROGRAM] [FOLDER]
set -euo pipefail
which=${1:?give brain, retina or mnist}
program=$(realpath "${2:-build/tessera}")
folder=${3:-runs/walkthroughs}/$which
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
cd "$folder"
rm -rf run

python3 "$here/${which}_data.py" .
case $which in
brain)
  "$program" train unet3d:base=8,depth=4,classes=4,norm=instance --input 2x1x48x48x40 \
    --data folder:. --validation-fraction 0 --normalise z-score --spacing 2x2x2 \
    --augment flip:axes=x --crop-centres classes:share=0.7 --patches-per-image 80 --epochs 5 \
    --optimiser adamw --learning-rate 0.005 --learning-rate-schedule cosine \
    --loss cross_entropy+dice --threads 2 --run run
  "$program" predict run --images folder:test --space 2x2x1 --threads 1 --output right.nii.gz
  "$program" evaluate run --data folder:test --space 2x2x1 --threads 1
  ;;
retina)
  "$program" train unet2d:base=8,depth=4,classes=2 --input 4x3x128x128 \
    --data folder:. --validation-fraction 0 --normalise scale --augment flip+rotate90 \
    --crop-centres foreground:share=0.7 --patches-per-image 160 --epochs 4 --optimiser adamw \
    --learning-rate 0.003 --learning-rate-schedule cosine --loss cross_entropy+dice \
    --threads 2 --run run
  "$program" predict run --images folder:test --space 2x2 --threads 1 \
    --output vessels.tif --overlay vessels.png
  "$program" evaluate run --data folder:test --space 2x2 --threads 1
  ;;
mnist)
  "$program" train cnn2d:base=16,depth=3,classes=10 --input 64x1x28x28 --data folder:digits \
    --normalise scale --epochs 3 --optimiser adamw --learning-rate 0.003 \
    --learning-rate-schedule cosine --threads 2 --run run
  "$program" evaluate run --data folder:digits,split=test
  ;;
*)
  echo "run.sh: '$which' is not one of brain, retina, mnist" >&2
  exit 2
  ;;
esac
