"""Once again, 17: `semel dedup` and data at its edges: once_again_17_dedup.py --program PATH.

The cases are those of tests/tools/dedup/dedup_data_test.py.
"""

import argparse
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools" / "dedup"))
import dedup_data_test  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=os.path.abspath, required=True)
    arguments, rest = parser.parse_known_args()
    dedup_data_test.SEMEL = arguments.program
    unittest.main(module=dedup_data_test, argv=[sys.argv[0], *rest])
