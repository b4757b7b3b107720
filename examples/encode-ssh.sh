#!/bin/bash
# A planned encoding on machines reached by ssh, which see the corpus and FOLDER under the same paths.
#   examples/encode-ssh.sh FOLDER SHARDS HOST HOST …
# Each host takes the next shard when it is done with one. One that fails is named at the end: call it again.
set -euo pipefail
folder=$1 shards=$2
shift 2
work() {  # HOST: shards until there are none
    while read -r -u 3 shard; do
        ssh -n "$1" python -m pyserini_repbert.encode --output "$folder" --plan-shard "$shard" --offline --quiet ||
            echo "shard $shard failed on $1" >&2
    done
}
export -f work
export folder
# One open file for all: bash reads a line byte by byte from a pipe, so that no two hosts get the same shard.
seq 0 $((shards - 1)) | { exec 3<&0; printf '%s\n' "$@" | xargs -P "$#" -I '{}' bash -c 'work "$1"' _ '{}'; }
python -m pyserini_repbert.encode --output "$folder" --finish
