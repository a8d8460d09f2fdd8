package partition

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/testneed"
)

// fakes holds programs that take the arguments and files of the real ones. Each checks the head of
// the file and gives part 1 to the nodes whose line has the most fields, so that the parts depend
// on the graph's lines.
var fakes = map[string]string{
	Metis: `#!/bin/sh
[ "$1" = -seed=7 ] && [ "$2" = -ufactor=50 ] && [ "$4" = 2 ] || { echo "arguments $*" >&2; exit 3; }
awk 'NR == 1 { if ($1 != 4 || $2 != 3 || $3 != WANT) exit 4; next } { print (NF >= 3 + EXTRA) }' "$3" > "$3.part.2"
`,
	Kahip: `#!/bin/sh
[ "$2" = --k=2 ] && [ "$3" = --seed=7 ] && [ "$4" = --preconfiguration=strong ] && [ "$5" = --imbalance=5 ] || { echo "arguments $*" >&2; exit 3; }
awk 'NR == 1 { if ($1 != 4 || $2 != 3 || $3 != WANT) exit 4; next } { print (NF >= 3 + EXTRA) }' "$1" > "${6#--output_filename=}"
`,
	Scotch: `#!/bin/sh
[ "$1" = -b0.05 ] && [ "$2" = 2 ] || { echo "arguments $*" >&2; exit 3; }
awk 'NR == 1 && $1 != 0 || NR == 2 && ($1 != 4 || $2 != 6) || NR == 3 && $2 != FLAGS { exit 4 }
	NR == 3 { print 4 } NR > 3 { print NR - 4, (NF >= 4 + EXTRA) }' "$3" > "$4"
`,
}

// install puts a program on PATH, which otherwise has only the system's own directories.
func install(t *testing.T, name, text string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// The graph is a star of three leaves; its centre, node 0, has the most neighbours.
func TestPrograms(t *testing.T) {
	g, err := graphops.FromEdges(4, []int32{1, 2, 0, 0}, []int32{0, 0, 3, 0}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for method, text := range fakes {
		name := programs[method].names[0]
		for _, weights := range [][]int32{nil, {1, 2, 3, 4}} {
			want, extra, flags := `""`, "0", `"000"`
			if weights != nil {
				want, extra, flags = "10", "1", `"001"`
			}
			install(t, name, strings.NewReplacer("WANT", want, "EXTRA", extra, "FLAGS", flags).Replace(text))
			p, err := Divide(t.Context(), g, 2, Options{Method: method, Preset: Strong, Seed: 7 + 1<<31, Imbalance: 0.05, Weights: weights})
			if err != nil || !slices.Equal(p.Of, []int32{1, 0, 0, 0}) || p.EdgeCut != 3 {
				t.Errorf("%s with weights %v: %v, %v", method, weights, p, err)
			}
		}
		for says, text := range map[string]string{
			"it said: no such graph":           "#!/bin/sh\necho no such graph >&2; exit 1\n",
			"without writing the parts":        "#!/bin/sh\n",
			"wrote no part from 0 to 1 for":    strings.NewReplacer("WANT", `""`, "EXTRA", "0", "FLAGS", `"000"`, "print (", "print 7 + (", "4, (", "4, 7 + (").Replace(text),
			"which is not on PATH; install it": "",
		} {
			if text == "" {
				t.Setenv("PATH", t.TempDir())
			} else {
				install(t, name, text)
			}
			_, err := Divide(t.Context(), g, 2, Options{Method: method, Preset: Strong, Seed: 7, Imbalance: 0.05})
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v; want %q", method, err, says)
			}
		}
	}
}

// The test runs the real programs. KaHIP is in no package registry that the tests use, so it is
// tested only where it is installed.
func TestRealPrograms(t *testing.T) {
	if !testneed.Partitioners.Here() {
		testneed.Skip(t, testneed.Partitioners, "they are not there")
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+testneed.PartitionersDir())
	methods := []string{Metis, Scotch}
	if _, err := exec.LookPath("kaffpa"); err == nil {
		methods = append(methods, Kahip)
	}
	g := made(t, 2000, 8000, false)
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			weights := make([]int32, g.NumNodes())
			for v := range weights {
				weights[v] = int32(1 + v%3)
			}
			for _, w := range [][]int32{nil, weights} {
				p, random := divide(t, g, 4, Options{Method: method, Weights: w}), divide(t, g, 4, Options{Method: Random})
				if 2*p.EdgeCut > random.EdgeCut || p.Imbalance > 1.05 {
					t.Errorf("%v\n%v", p, random)
				}
			}
		})
	}
}
