#!/usr/bin/env python3
"""Every error code that plans/ can throw is provoked: by a document of tests/plans/bad or by a test. Fails otherwise.

A code counts as tested when it is in an .expected file, or stands in a test source of tests/plans."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
if ROOT.is_file():
    ROOT = ROOT.parents[2]

# Codes that no document and no call can provoke, and why.
CANNOT = {
    "KP-I001": "guards an invariant: every kind of expression that the checker makes is evaluated",
    "KP-P001": "guards an invariant: the parser makes no other kinds of expression than the checker takes",
}

CODE = re.compile(r"KP-[A-Z][0-9]{3}")


def codes_in(paths):
    return {code for path in paths for code in CODE.findall(path.read_text(encoding="utf-8", errors="replace"))}


thrown = codes_in((ROOT / "plans").glob("*.cpp"))
tests = ROOT / "tests" / "plans"
tested = codes_in([*(tests / "bad").glob("*.expected"), *tests.glob("*_test.cpp")])

missing = sorted(thrown - tested - CANNOT.keys())
stale = sorted(CANNOT.keys() - thrown) + sorted(CANNOT.keys() & tested)
for code in missing:
    print(f"{code} is thrown in plans/ and no document or test provokes it")
for code in stale:
    print(f"{code} is listed as impossible to provoke, but is not thrown or is tested")
print(f"{len(thrown)} codes thrown, {len(thrown & tested)} tested, {len(CANNOT)} cannot be provoked")
sys.exit(bool(missing or stale))
