"""A worker for tests: says that it began in the file that its settings name; the first one dies, the next one stays."""

import json
import os
import sys
from pathlib import Path

began = Path(json.loads(sys.stdin.buffer.readline()))
with began.open("a") as file:
    file.write(f"{os.getpid()}\n")
if len(began.read_text().splitlines()) == 1:
    os._exit(75)
sys.stdin.buffer.read()
