#!/usr/bin/env python3
"""The JSON Schema of the format accepts every plan that is right, and refuses what is wrong in the document's form.

Exits with 77 (ctest: skipped) where python3-jsonschema is missing. Wrong plans whose mistake is one of form are those
told a KP-J code, less the kinds that no schema can see; plans wrong in another way must pass the schema."""
import json
import pathlib
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError as reason:
    print(f"skipped: {reason}; install python3-jsonschema")
    sys.exit(77)

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
if ROOT.is_file():
    ROOT = ROOT.parents[2]
schema = json.loads((ROOT / "plans/schema/kplan-1.schema.json").read_text())
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
failures = 0
accepted = refused = 0


def fail(path, what):
    global failures
    failures += 1
    print(f"{path.relative_to(ROOT)}: {what}")


for folder in ("tests/plans/good", "plans/examples"):
    for path in sorted((ROOT / folder).glob("*.json")):
        if path.name.endswith(".data.json"):  # the values of an example, not a plan
            continue
        accepted += 1
        for error in validator.iter_errors(json.loads(path.read_text())):
            fail(path, f"is refused: {error.json_path}: {error.message}")

# What the schema may refuse besides: names, types and counts, which it spells out where it can.
MAY_REFUSE = {"KP-P020", "KP-P022", "KP-P033", "KP-P041", "KP-P043", "KP-P044", "KP-P045", "KP-P046", "KP-S013", "KP-S014", "KP-P040"}
# Forms that JSON Schema does not tell apart: 1.0 is an integer there.
CANNOT_REFUSE = {"version-is-real"}

for path in sorted((ROOT / "tests/plans/bad").glob("*.json")):
    message = path.with_suffix(".expected").read_text(encoding="utf-8", errors="replace")
    code = message.splitlines()[0].rsplit("[", 1)[1].rstrip("]")
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        continue
    if code in ("KP-J003", "KP-J004", "KP-J005"):
        continue
    is_accepted = validator.is_valid(document)
    if code.startswith("KP-J") and is_accepted and path.stem not in CANNOT_REFUSE:
        fail(path, f"is wrong in form ({code}), and the schema accepts it")
    if not code.startswith("KP-J") and code not in MAY_REFUSE and not is_accepted:
        fail(path, f"is right in form ({code} is about its meaning), and the schema refuses it: {next(validator.iter_errors(document)).message}")
    refused += not is_accepted

print(f"{accepted} plans accepted, {refused} wrong documents refused, {failures} failures")
sys.exit(bool(failures))
