#!/usr/bin/env bash
# Lists the dependencies that have a newer release: Go modules (the tools' included), Python packages, npm
# packages and GitHub actions. It asks each registry with the registry's own client; an unanswered question is
# "unknown". It changes nothing. Dependabot watches the base images of docker/.
set -uo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python || exit 1

declare -A held=(
  [github.com/janpfeifer/gonb]="gnb install patches this release"
  [github.com/goreleaser/goreleaser/v2]="2.17 needs go-msix, which the module proxy refuses; 2.18 needs Go 1.27"
  [golang.org/x/tools/gopls]="0.24 needs Go 1.27"
  [golang.org/x/tools]="the one that gopls 0.23 is released with"
  [nvidia-cuda-nvrtc-cu11]="another compiler writes other bytes: make kernels"
)
current=0 behind=0 unknown=0

row() { # file, name, what it has, the newest ("" if unknown)
  local note=${held[$2]:-}
  if [ -z "$4" ]; then
    unknown=$((unknown + 1))
    printf '%-8s %-32s %-42s %s\n' unknown "$1" "$2" "$3${note:+  ($note)}"
  elif [ "$3" = "$4" ] || [ "$(printf '%s\n%s\n' "$3" "$4" | sort -V | tail -n 1)" = "$3" ]; then
    current=$((current + 1))
  else
    behind=$((behind + 1))
    printf '%-8s %-32s %-42s %s\n' behind "$1" "$2" "$3 -> $4${note:+  ($note)}"
  fi
}

modules() { # a go.mod: "MODULE VERSION" of what it requires directly, and of its tools
  awk '
    $1 == "tool" && $2 == "(" { block = "tool"; next }
    $1 == "require" && $2 == "(" { block = "require"; next }
    $1 == ")" { block = ""; next }
    $1 == "tool" { tools[$2] } block == "tool" { tools[$1] }
    $1 == "require" { version[$2] = $3; if (!/indirect/) print $2, $3 }
    block == "require" { version[$1] = $2; if (!/indirect/) print $1, $2 }
    END {
      for (t in tools) {
        best = ""
        for (m in version) if (index(t "/", m "/") == 1 && length(m) > length(best)) best = m
        if (best != "") print best, version[best]
      }
    }' "$1" | sort -u
}

for file in go.mod tools/go.mod tools/actionlint/go.mod tools/compose/go.mod tools/gotestsum/go.mod tools/kubernetes/go.mod tools/release/go.mod gnb/cmd/gnb/internal/kernel/tools.mod; do
  while read -r module have; do
    row "$file" "$module" "$have" "$(cd / && timeout 30 go list -m -f '{{.Version}}' "$module@latest" 2>/dev/null)"
  done < <(modules $file)
done

python=$(bash scripts/python.sh)
for file in docker/requirements.in scripts/requirements.in scripts/requirements-uv.txt scripts/requirements-cuda.txt internal/labtest/requirements.txt bench/requirements-newest.txt; do
  while IFS='=' read -r name _ have; do
    row $file "$name" "$have" "$(timeout 30 "$python" -m pip --disable-pip-version-check index versions "$name" 2>/dev/null | sed -n '1s/.*(\(.*\))$/\1/p')"
  done < <(grep -v 'python_version <' $file | sed -n 's/^\([A-Za-z][A-Za-z0-9_.-]*==[A-Za-z0-9.]*\).*/\1/p')
done

while read -r name have; do
  row internal/labtest/package.json "$name" "$have" "$(timeout 30 npm view "$name" version 2>/dev/null)"
done < <(sed -n '/"dependencies"/,/}/s/.*"\([a-z@/-]*\)": "\([0-9.]*\)".*/\1 \2/p' internal/labtest/package.json)

while read -r name have; do
  newest=$(GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --tags "https://github.com/$name" 'v*.*.*' 2>/dev/null | sed -n 's|.*refs/tags/\(v[0-9.]*\)$|\1|p' | sort -V | tail -n 1)
  row .github/workflows "$name" "$have" "$newest"
done < <(sed -n 's/.*uses: \([^@]*\)@[0-9a-f]* # \(v[0-9.]*\).*/\1 \2/p' .github/workflows/*.yml | sort -u)

echo "$behind behind, $unknown unknown, $current current"
