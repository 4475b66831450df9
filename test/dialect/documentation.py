"""Holds the dialect to its own documentation.

Reads the records of TableGen as JSON, and fails if an op, an attribute or a
type lacks a summary, a description or an example; if a constraint of
README.md does not stand beside exactly one check and in exactly one failing
test; or if an axis is missing from README.md.

usage: documentation.py RECORDS.json SOURCE_DIR
"""

import json
import pathlib
import re
import sys

# Superclass -> kind, and how README.md writes one.
KINDS = {
    "Op": ("op", r"\battn\.{}\b"),
    "AttrDef": ("attribute", r"\b{}<"),
    "TypeDef": ("type", r"!attn\.{}\b"),
}


def documented(records):
    """Yields (kind, mnemonic, pattern, record) of what a user can write."""
    for name, record in records.items():
        if not isinstance(record, dict) or not name.startswith("Attn_"):
            continue
        for superclass in KINDS.keys() & set(record["!superclasses"]):
            kind, pattern = KINDS[superclass]
            mnemonic = record.get("opName") or record.get("mnemonic")
            yield kind, mnemonic, pattern.format(mnemonic), record


def check_records(records):
    for kind, mnemonic, _, record in documented(records):
        text, _, example = (record["description"] or "").partition("Example:")
        for what, found in (("summary", record["summary"]),
                            ("description", text), ("example", example)):
            if not (found or "").strip():
                yield f"{kind} '{mnemonic}' has no {what}"


def check_constraints(dialect, tests, readme):
    """Every number: once in README.md, beside one check, in one test."""
    numbers = re.findall(r"^\| C(\d+) \|", readme, re.M)
    if numbers != [str(i + 1) for i in range(len(numbers))]:
        yield "constraints of README.md are not numbered in order from C1"
    sources = [p for ext in ("*.cpp", "*.td") for p in dialect.glob(ext)]
    checks = "\n".join(p.read_text() for p in sources)
    cases = "\n".join(p.read_text() for p in tests.glob("*-invalid.mlir"))
    checked = re.findall(r"// C(\d+)\b", checks)
    tested = re.findall(r"^// C(\d+):", cases, re.M)
    for where, found in (("a check", checked), ("a failing test", tested)):
        for number in numbers:
            if found.count(number) != 1:
                yield f"C{number} has {where} {found.count(number)} times"
        for number in sorted(set(found) - set(numbers), key=int):
            yield f"C{number} has {where}, but README.md does not know it"


def check_mentions(records, readme):
    for kind, mnemonic, pattern, _ in documented(records):
        if not re.search(pattern, readme):
            yield f"README.md does not mention {kind} '{mnemonic}'"


def main():
    records = json.loads(pathlib.Path(sys.argv[1]).read_text())
    source = pathlib.Path(sys.argv[2])
    readme = (source / "dialect/README.md").read_text()
    found = len(list(documented(records)))
    errors = [] if found > 30 else [f"expected some 30 records, got {found}"]
    errors += check_records(records)
    errors += check_constraints(source / "dialect", source / "test/dialect",
                                readme)
    errors += check_mentions(records, readme)
    for error in errors:
        print(f"error: {error}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
