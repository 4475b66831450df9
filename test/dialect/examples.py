"""Prints the examples of attributes, types and of `attn.kernel` as one module.

Reads the records of TableGen as JSON. The other ops need operands, so their
examples are not complete; roundtrip-*.mlir has them in context.

usage: examples.py RECORDS.json
"""

import json
import pathlib
import re
import sys


def main():
    records = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for name, record in sorted(records.items()):
        if not isinstance(record, dict) or not name.startswith("Attn_"):
            continue
        superclasses = set(record["!superclasses"])
        text = record.get("description") or ""
        if superclasses & {"AttrDef", "TypeDef"}:
            example = re.search(r"Example: `([^`]*)`", text).group(1)
            if example.startswith(record["mnemonic"] + "<"):
                example = "#attn." + example
            print(f'"test.{name}"() {{example = {example}}} : () -> ()')
        elif record.get("opName") == "kernel":
            print(re.search(r"```mlir\n(.*?)```", text, re.S).group(1))


if __name__ == "__main__":
    main()
