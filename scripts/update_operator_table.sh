#!/usr/bin/env bash
# Puts the tables that the program prints into docs/models.md: `scripts/update_operator_table.sh build`.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build}/tessera
python3 - "$program" <<'PYTHON'
import re, subprocess, sys
page = open("docs/models.md").read()
table = subprocess.run([sys.argv[1], "models", "--operators"], capture_output=True, text=True, check=True).stdout
page = re.sub(r"(?s)(<!-- operators -->\n).*?(<!-- /operators -->)", lambda m: m[1] + table + m[2], page)
open("docs/models.md", "w").write(page)
PYTHON
