package nbtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const completeImports = "import \"github.com/graphnb/graphnb/gnb\"\n\n%%\n"

// completions asks a kernel about codes; vars are added to the environment, args are complete.py's.
func completions(t *testing.T, env *Env, vars, codes []string, args ...string) (got []struct {
	Matches   []string
	Text, Doc string
},
) {
	t.Helper()
	for _, c := range codes {
		args = append(args, completeImports+c)
	}
	out, err := env.script(t, vars, "complete.py", args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(codes) {
		t.Fatalf("%v: %s", err, out)
	}
	return got
}

// A kernel that started before gopls was built ("make lab" the first time) completes names once it is.
func TestNamesCompleteLater(t *testing.T) {
	env := Setup(t)
	if err := env.Install("--name", "graphnb"); err != nil { // builds the gopls that is used below
		t.Fatal(err)
	}
	bin := filepath.Dir(env.Gnb)
	prefix := t.TempDir()
	later := filepath.Join(prefix, "share", "jupyter", "graphnb", "bin")
	// The programs of cells are as in the environment; links keep this from building them again.
	if err := os.MkdirAll(later, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gonb", "goimports", "tools.stamp"} {
		if err := os.Symlink(filepath.Join(bin, name), filepath.Join(later, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(env.Gnb, "install", "--prefix", prefix, "--dev", env.Root, "--name", "graphnb-later", "--editor-later")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	from, to := filepath.Join(bin, "editor"), filepath.Join(later, "editor")
	got := completions(t, env, []string{"JUPYTER_PATH=" + filepath.Join(prefix, "share", "jupyter")}, []string{"ds := gnb.Must(gnb.Lo|)", "ds := gnb.Must(gnb.Lo|ad(context.Background(), \"karate\"))\nfmt.Println(ds)"},
		"--kernel", "graphnb-later", "--then", fmt.Sprintf("ln -sf '%[1]s/gopls' '%[2]s/gopls' && cp '%[1]s/tools.stamp' '%[2]s'", from, to))
	if !slices.Contains(got[0].Matches, "Load") {
		t.Errorf("it completes to %q, want Load among them", got[0].Matches)
	}
	if !strings.Contains(got[1].Doc, "Load opens a dataset") {
		t.Errorf("it is explained as %q", got[1].Doc)
	}
}

// Tab completes names of the library, and Shift+Tab shows their documentation, in the installed
// kernel.
func TestNamesComplete(t *testing.T) {
	env := Setup(t)
	const name = "graphnb" // not the tests' kernel, which has no browser and hence no gopls
	if err := env.Install("--name", name); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ code, match, doc string }{
		{code: "ds := gnb.Must(gnb.Lo|)", match: "Load"},
		{code: "o := gnb.TrainOptions{Work|}", match: "Workers"},
		{code: "ds := gnb.Must(gnb.Lo|ad(context.Background(), \"karate\"))\nfmt.Println(ds)", doc: "Load opens a dataset"},
		{code: "o := gnb.TrainOptions{Bat|ch: 7}\nfmt.Println(o)", doc: "Batch is the number of seeds per step"},
	}
	var codes []string
	for _, c := range cases {
		codes = append(codes, c.code)
	}
	got := completions(t, env, nil, codes, "--kernel", name)
	for i, c := range cases {
		if g := got[i]; c.match != "" && (!slices.Contains(g.Matches, c.match) || g.Text == "" || !strings.HasPrefix(c.match, g.Text)) {
			t.Errorf("%q completes %q to %q, want %s among them", c.code, g.Text, g.Matches, c.match)
		}
		if !strings.Contains(got[i].Doc, c.doc) {
			t.Errorf("%q is explained as %q, want %q in it", c.code, got[i].Doc, c.doc)
		}
	}
}
