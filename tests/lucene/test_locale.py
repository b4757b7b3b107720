"""Java names files as Python does, whatever the locale is."""

import os
import subprocess
import sys

import pytest
from folders import HANGS

NAMES_A_FOLDER = """
import os
from pyserini_repbert.lucene.jvm import java_class

path = java_class('java.io.File')('Größe').toPath()
print(ascii(str(path.toString())), os.environ['LC_ALL'])
"""


@pytest.mark.jvm
@pytest.mark.parametrize('locale', ['C', 'POSIX'])
def test_java_names_a_folder_that_ascii_cannot(locale):
    """It said `InvalidPathException: Malformed input`."""
    done = subprocess.run(
        [sys.executable, '-c', NAMES_A_FOLDER],
        env={**os.environ, 'LC_ALL': locale},
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert done.stderr == ''
    assert done.stdout.split() == ["'Gr\\xf6\\xdfe'", locale]
