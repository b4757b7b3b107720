#!/bin/bash
# Encodes a corpus in parts on machines reached by ssh. They see CORPUS and FOLDER under the same paths.
#   examples/encode-ssh.sh CORPUS ENCODER FOLDER PARTS HOST HOST …
# A host that finishes a part takes the next one. A part that fails is named: run the script again.
set -euo pipefail
export corpus=$1 encoder=$2 folder=$3 parts=$4
shift 4
work() {  # PART HOST HOST …: the part, on the host of this slot
    local part=$1 host=${*:SLOT+2:1}
    ssh -n "$host" python -m pyserini_repbert.encode --corpus "$corpus" --encoder "$encoder" --output "$folder" \
        --shard "$part/$parts" --resume --offline --quiet || echo "part $part failed on $host" >&2
}
export -f work
# One slot for each host: xargs (GNU's) gives the next part to a free slot.
seq 0 $((parts - 1)) | xargs -P "$#" --process-slot-var=SLOT -I '{}' bash -c 'work "$@"' _ '{}' "$@"
python -m pyserini_repbert.encode --output "$folder" --finish
