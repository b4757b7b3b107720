#!/bin/sh
# What the Dockerfile installs; run in a folder with the package's sources. PYTHON names another interpreter.
set -eu
PYTHON=${PYTHON:-python}
$PYTHON -m pip install --no-cache-dir -c constraints.txt torch --index-url https://download.pytorch.org/whl/cpu ||
    $PYTHON -m pip install --no-cache-dir -c constraints.txt torch
$PYTHON -m pip install --no-cache-dir -c constraints.txt '.[demo,serve]'
$PYTHON -m pyserini_repbert.serve --help > /dev/null
