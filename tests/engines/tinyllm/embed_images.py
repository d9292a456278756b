#!/usr/bin/env python3
"""Write the kernels' images as C source: embed_images.py OUT.c MAKE_IMAGE.py.

PTX for GPUs is taken as it is kept; the simulator's image is compiled from kernels/simulator.c.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = Path(__file__).resolve().parent / "kernels"
COLUMNS = 32


def simulator_image(maker: Path) -> bytes:
    """Compile the simulator's kernels."""
    environment = {**os.environ, "CC": f"{os.environ.get('CC', 'cc')} -I {shlex.quote(str(KERNELS))}"}
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "kernels.fsim"
        subprocess.run([sys.executable, maker, image, KERNELS / "simulator.c"], check=True, env=environment)
        return image.read_bytes()


def array(name: str, content: bytes) -> str:
    """Write bytes as a C array."""
    rows = (content[at : at + COLUMNS] for at in range(0, len(content), COLUMNS))
    lines = "\n".join(",".join(str(byte) for byte in row) + "," for row in rows)
    return f"_Alignas(16) const unsigned char {name}[] = {{\n{lines}\n}};\nconst size_t {name}_bytes = sizeof {name};\n"


def main() -> None:
    """Run the command line."""
    output, maker = (Path(word) for word in sys.argv[1:])
    gpu = array("gpu_image", (KERNELS / "gpu.ptx").read_bytes() + b"\0")
    output.write_text(f'#include "images.h"\n\n{gpu}\n{array("simulator_image", simulator_image(maker))}')


if __name__ == "__main__":
    main()
