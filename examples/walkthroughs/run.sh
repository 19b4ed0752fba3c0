#!/usr/bin/env bash
# The walk-throughs of docs/walkthroughs.md, each in minutes on 2 cores.
#
#   examples/walkthroughs/run.sh brain|retina|mnist|domains [PROGRAM] [FOLDER]
set -euo pipefail
which=${1:?give brain, retina, mnist or domains}
program=$(realpath "${2:-build/tessera}")
folder=${3:-runs/walkthroughs}/$which
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
cd "$folder"
rm -rf run source_only

if [ -e "$here/${which}_data.py" ]; then python3 "$here/${which}_data.py" data; fi
case $which in
brain)
  "$program" train unet3d:base=8,depth=4,classes=4,norm=instance --input 1x1x60x72x30 \
    --data folder:data --validation-fraction 0 --normalise z-score --spacing 3x3x3 \
    --augment flip:axes=x --patches-per-image 60 --epochs 10 --optimiser adamw \
    --learning-rate 0.01 --learning-rate-schedule cosine \
    --loss cross_entropy:class_weights=1/1/5/3+dice --threads 2 --run run
  "$program" predict run --images folder:data/test --space 2x2x1 --threads 1 --output right.nii.gz
  "$program" evaluate run --data folder:data/test --space 2x2x1 --threads 1
  python3 "$here/brain_picture.py" data/test/images/right.nii.gz \
    data/test/masks/right.nii.gz right.nii.gz brain.png
  ;;
retina)
  "$program" train unet2d:base=8,depth=4,classes=2 --input 4x3x128x128 \
    --data folder:data --validation-fraction 0 --normalise scale --augment flip+rotate90 \
    --crop-centres foreground:share=0.7 --patches-per-image 160 --epochs 4 --optimiser adamw \
    --learning-rate 0.003 --learning-rate-schedule cosine --loss cross_entropy+dice \
    --threads 2 --run run
  "$program" predict run --images folder:data/test --space 2x2 --threads 1 \
    --output vessels.tif --overlay vessels.png
  "$program" evaluate run --data folder:data/test --space 2x2 --threads 1
  ;;
mnist)
  "$program" train cnn2d:base=16,depth=3,classes=10 --input 64x1x28x28 --data folder:data/digits \
    --normalise scale --augment affine:rotate=10,scale=0.1,translate=0.05 --epochs 5 \
    --optimiser adamw --learning-rate 0.003 --learning-rate-schedule cosine --threads 2 --run run
  "$program" evaluate run --data folder:data/digits,split=test
  "$program" predict run --images folder:data/digits,split=test --output classes.npy
  python3 "$here/mnist_picture.py" data classes.npy digits.png
  ;;
domains)
  source=synthetic:samples=64,classes=3,noise=0.1,texture=0.2
  target=$source,domain=5
  options=(--input 8x1x64x64 --validation-fraction 0 --epochs 40 --optimiser adam
    --learning-rate 0.003 --learning-rate-schedule cosine)
  model=dsn_unet2d:base=8,depth=3,classes=3
  "$program" train $model,targets=0 --data $source "${options[@]}" --threads 2 --run source_only
  "$program" train "$model,targets=1,similarity=mmd,gamma=5,start=120,ramp=120" \
    --data "source=$source;target1=$target" "${options[@]}" --domains 1 --run run \
    --save-weights weights.safetensors
  for run in source_only run; do
    for data in $source $target; do "$program" evaluate $run --data $data --seed 77; done
  done
  python3 "$here/domains_picture.py" "$program" weights.safetensors $source $target codes.png
  ;;
*)
  echo "run.sh: '$which' is not one of brain, retina, mnist, domains" >&2
  exit 2
  ;;
esac
