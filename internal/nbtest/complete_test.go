package nbtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Names of the library complete while somebody types them, and explain themselves, in the kernel that
// people have.
func TestNamesComplete(t *testing.T) {
	env := Setup(t)
	const name = "graphnb" // not the tests' kernel, which has no browser and hence no gopls
	if err := env.Install("--name", name); err != nil {
		t.Fatal(err)
	}
	const imports = "import \"github.com/graphnb/graphnb/gnb\"\n\n%%\n"
	cases := []struct{ code, match, doc string }{
		{code: "ds := gnb.Must(gnb.Lo|)", match: "Load"},
		{code: "o := gnb.TrainOptions{Work|}", match: "Workers"},
		{code: "ds := gnb.Must(gnb.Lo|ad(context.Background(), \"karate\"))\nfmt.Println(ds)", doc: "Load opens a dataset"},
		{code: "o := gnb.TrainOptions{Bat|ch: 7}\nfmt.Println(o)", doc: "Batch is the number of seeds of a step"},
	}
	args := []string{"--kernel", name}
	for _, c := range cases {
		args = append(args, imports+c.code)
	}
	out, err := env.script(t, nil, "complete.py", args...)
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Matches   []string
		Text, Doc string
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%v: %s", err, out)
	}
	for i, c := range cases {
		if g := got[i]; c.match != "" && (!slices.Contains(g.Matches, c.match) || g.Text == "" || !strings.HasPrefix(c.match, g.Text)) {
			t.Errorf("%q completes %q to %q, want %s among them", c.code, g.Text, g.Matches, c.match)
		}
		if !strings.Contains(got[i].Doc, c.doc) {
			t.Errorf("%q is explained as %q, want %q in it", c.code, got[i].Doc, c.doc)
		}
	}
}
