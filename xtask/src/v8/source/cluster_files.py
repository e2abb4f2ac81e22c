"""Groups files that V8's build generates, so that each header is read once a group.

V8's build files ask for this script (v8/gni/cluster_build.gni), and the v8 crate leaves it out.
With --compute-filenames it prints the names of the groups, with --generate it writes them.
"""

import argparse
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--compute-filenames", action="store_true")
parser.add_argument("--generate", action="store_true")
parser.add_argument("--prefix")
parser.add_argument("--cluster-size", type=int)
parser.add_argument("--output-dir", type=pathlib.Path)
parser.add_argument("--strip-prefix", default="")
# The next two are for files that are not generated.
parser.add_argument("--small-cluster-size")
parser.add_argument("--small-cluster-dirs", action="append")
parser.add_argument("sources", nargs="+")
options = parser.parse_args()

sources = sorted(options.sources)
for start in range(0, len(sources), options.cluster_size):
    name = f"{options.prefix}-{start // options.cluster_size}.cc"
    if options.generate:
        group = sources[start : start + options.cluster_size]
        lines = [f'#include "{path.removeprefix(options.strip_prefix)}"\n' for path in group]
        options.output_dir.mkdir(parents=True, exist_ok=True)
        (options.output_dir / name).write_text("".join(lines))
    else:
        print(name)
