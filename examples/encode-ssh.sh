#!/bin/bash
# A planned encoding on machines reached by ssh, which see the corpus and FOLDER under the same paths.
#   examples/encode-ssh.sh FOLDER SHARDS HOST HOST …
# Each host takes the next shard when it is done with one. One that fails is named at the end: call it again.
set -euo pipefail
folder=$1 shards=$2
shift 2
work() {  # SHARD HOST HOST …: the shard, on the host of this slot
    local shard=$1 host=${*:SLOT+2:1}
    ssh -n "$host" python -m pyserini_repbert.encode --output "$folder" --plan-shard "$shard" --offline --quiet ||
        echo "shard $shard failed on $host" >&2
}
export -f work
export folder
# As many slots as hosts: xargs (GNU's) gives the next shard to the slot that is free.
seq 0 $((shards - 1)) | xargs -P "$#" --process-slot-var=SLOT -I '{}' bash -c 'work "$@"' _ '{}' "$@"
python -m pyserini_repbert.encode --output "$folder" --finish
