#!/bin/bash
# A corpus encoded in parts on machines reached by ssh, which see CORPUS and FOLDER under the same paths.
#   examples/encode-ssh.sh CORPUS ENCODER FOLDER PARTS HOST HOST …
# Each host takes the next part when it is done with one. One that fails is named at the end: call it again.
set -euo pipefail
export corpus=$1 encoder=$2 folder=$3 parts=$4
shift 4
work() {  # PART HOST HOST …: the part, on the host of this slot
    local part=$1 host=${*:SLOT+2:1}
    ssh -n "$host" python -m pyserini_repbert.encode --corpus "$corpus" --encoder "$encoder" --output "$folder" \
        --shard "$part/$parts" --resume --offline --quiet || echo "part $part failed on $host" >&2
}
export -f work
# As many slots as hosts: xargs (GNU's) gives the next part to the slot that is free.
seq 0 $((parts - 1)) | xargs -P "$#" --process-slot-var=SLOT -I '{}' bash -c 'work "$@"' _ '{}' "$@"
python -m pyserini_repbert.encode --output "$folder" --finish
