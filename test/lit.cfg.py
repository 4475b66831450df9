"""How lit runs the tests of TokenTile.

Features a test may ask for with REQUIRES:
  ptxas   an assembler of CUDA 13 or newer was found (%ptxas)
  matplotlib  the Python that runs lit has it
  gpu     TOKENTILE_TEST_GPU=1 says that a GPU may be used
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import lit.formats

config.name = "TokenTile"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)

config.environment["PATH"] = os.pathsep.join(
    [config.tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)
config.environment["FILECHECK_OPTS"] = (
    "-enable-var-scope --allow-unused-prefixes=false"
)
config.substitutions += [
    ("%python", sys.executable),
    ("%source_dir", config.source_dir),
    ("%bin_dir", config.tools_dir),
    ("%llvm_include", config.llvm_include_dir),
]


def find_ptxas():
    """The path of a ptxas that knows PTX 9.0, or None."""
    for folder in (None, "/usr/local/cuda/bin"):
        path = shutil.which("ptxas", path=folder)
        if not path:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True)
        release = re.search(r"release (\d+)", said.stdout)
        if release and int(release.group(1)) >= 13:
            return path
    return None


ptxas = find_ptxas()
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

if importlib.util.find_spec("matplotlib"):
    config.available_features.add("matplotlib")

if os.environ.get("TOKENTILE_TEST_GPU") == "1":
    config.available_features.add("gpu")
