"""Look for known vulnerabilities of the packages in constraints.txt, by pip-audit.

    python scripts/advisories.py

pip-audit asks a service over the network. Where that cannot be reached, this says that nothing was
looked up and ends well; where a package has an advisory, it ends with 1. What pip-audit could not
look up is named: by itself it counts such packages as sound.
"""

import json
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).parent.parent / "constraints.txt"
SECONDS = 300


def main() -> int:
    said, problem = ask()
    if said is None:
        print(f"advisories: skipped, nothing was looked up: {problem}")
        return 0
    found, unknown, count = judge(said)
    for line in found:
        print(f"advisories: {line}")
    if unknown:
        print(f"advisories: {len(unknown)} of {count} packages not looked up: {shown(unknown)}")
    if len(unknown) == count:
        print("advisories: skipped, the service knows none of these packages")
    else:
        print(f"advisories: {count - len(unknown)} packages looked up, {len(found)} advisories")
    return 1 if found else 0


def ask() -> tuple[str | None, str]:
    """What pip-audit says as JSON; None, and why, if it cannot look anything up."""
    asked = ["--requirement", str(PINNED), "--no-deps", "--disable-pip", "--format", "json"]
    command = [sys.executable, "-m", "pip_audit", *asked, "--progress-spinner", "off"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"pip-audit did not end in {SECONDS} seconds"
    if ran.stdout.lstrip().startswith("{"):
        return ran.stdout, ""
    lines = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
    return None, lines[-1][:200] if lines else "pip-audit said nothing"


def judge(said: str) -> tuple[list[str], list[str], int]:
    """A line for each advisory, the packages that were not looked up, and how many there are."""
    packages = json.loads(said)["dependencies"]
    found = [
        f"{each['name']} {each['version']}: {advisory['id']}"
        + (f", mended in {', '.join(advisory['fix_versions'])}" if advisory["fix_versions"] else "")
        for each in packages
        for advisory in each.get("vulns", ())
    ]
    return found, [each["name"] for each in packages if "skip_reason" in each], len(packages)


def shown(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


if __name__ == "__main__":
    sys.exit(main())
