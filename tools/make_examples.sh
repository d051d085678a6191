#!/bin/bash
# make_examples.sh PROGRAM DATA FOLDER: example reports of recordings that tell different stories. Those of the
# repository are always made; those of DATA/h200 where they are there.
set -euo pipefail
program=${1:?usage: make_examples.sh PROGRAM DATA FOLDER}
data=$2
folder=$3
mkdir -p "$folder"

make_report() { # NAME EVIDENCE...
  local name=$1
  shift
  "$program" report "$@" -o "$folder/$name.html" > /dev/null
  echo "$folder/$name.html"
}

make_report demo tests/data/demo_oom.pickle.zst
make_report ranks tests/data/ranks/copy_on_rank0
make_report before_and_after tests/data/causes/graph_kept_players.pickle.zst tests/data/causes/optimizer_state_players.pickle.zst
if [ ! -d "$data/h200" ]; then
  echo "no recordings in $data/h200 (set DATA): the others are left out" >&2
  exit 0
fi
for job in "$data"/h200/oom/*/; do
  make_report "oom_$(basename "$job")" "$job/oom_snapshot.pickle.zst"
done
make_report gpt_dynamic "$data/h200/gpt_dynamic/default/snapshot.pickle.zst"
make_report healthy_hf_gpt2 "$data/h200/hf_gpt2/default/snapshot.pickle.zst"
make_report healthy "$data/h200/causes/healthy/snapshot.pickle.zst"
