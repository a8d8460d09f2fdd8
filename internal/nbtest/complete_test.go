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

	"github.com/graphnb/graphnb/internal/testneed"
)

const completeImports = "import \"github.com/graphnb/graphnb/gnb\"\nimport \"example.com/own\"\n\n%%\n"

// completions sends codes to a kernel for completion, and runs those without a cursor as cells; vars are added to the
// environment, args are arguments of complete.py.
func completions(t *testing.T, env *Env, vars, codes []string, args ...string) (got []struct {
	Matches   []string
	Text, Doc string
},
) {
	t.Helper()
	requests := 0
	for _, c := range codes {
		if strings.Contains(c, "|") {
			requests++
			c = completeImports + c
		}
		args = append(args, c)
	}
	out, err := env.script(t, vars, "complete.py", args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got) != requests {
		t.Fatalf("%v: %s", err, out)
	}
	return got
}

// In the installed kernel, Tab completes names of the library and Shift+Tab shows their documentation: in a kernel that
// started before gopls was built (as in the first "make lab"), once gopls is built. With GNB_SOAK=1 a kernel that finds
// gopls when it starts is tested too: the time that gopls takes to read the library is most of this test. GoNB tells gopls
// what has changed in a module of the user's own.
func TestNamesComplete(t *testing.T) {
	env := Setup(t)
	if err := env.Install("--name", "graphnb"); err != nil { // builds gopls: the tests' own kernel has none
		t.Fatal(err)
	}
	bin := filepath.Dir(env.Gnb)
	prefix := t.TempDir()
	later := filepath.Join(prefix, "share", "jupyter", "graphnb", "bin")
	// The environment's programs are linked, so that they are not built again.
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
	complete(t, env, []string{"JUPYTER_PATH=" + filepath.Join(prefix, "share", "jupyter")}, "--kernel", "graphnb-later",
		"--then", fmt.Sprintf("mkdir -p '%[2]s' && ln -sf '%[1]s/gopls' '%[2]s/gopls' && cp '%[1]s/tools.stamp' '%[2]s'", from, to))
	if testneed.Soak.Here() {
		complete(t, env, nil, "--kernel", "graphnb")
	}
}

// slowEditor is a gopls that answers nothing but the first request.
const slowEditor = `import json, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[2].removeprefix("unix;"))
server.listen()
conn = server.accept()[0]
stream = conn.makefile("rb")
while line := stream.readline():
    size = int(line.split(b":")[1])
    while stream.readline().strip():
        pass
    request = json.loads(stream.read(size))
    if request.get("method") == "initialize":
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"capabilities": {}}}).encode()
        conn.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
`

// While gopls still reads the library, Shift+Tab says so.
func TestSlowEditor(t *testing.T) {
	if !testneed.Soak.Here() {
		testneed.Skip(t, testneed.Soak, "it waits until GoNB gives up on gopls, 20 s")
	}
	env := Setup(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gopls"), []byte("#!"+env.Python+"\n"+slowEditor), 0o755); err != nil {
		t.Fatal(err)
	}
	got := completions(t, env, nil, []string{"ds := gnb.Must(gnb.Lo|ad(context.Background(), \"karate\"))\nfmt.Println(ds)"}, "--kernel", KernelName, "--gopls", dir, "--patience", "0")
	if !strings.Contains(got[0].Doc, "still reading the library") {
		t.Errorf("Shift+Tab shows %q", got[0].Doc)
	}
}

// complete checks the answers that a kernel gives to Tab and Shift+Tab.
func complete(t *testing.T, env *Env, vars []string, args ...string) {
	t.Helper()
	own := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/own\n\ngo 1.26\n", "own.go": "package own\n\nfunc First() {}\n"} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct{ code, match, doc string }{
		{code: "ds := gnb.Must(gnb.Lo|)", match: "Load"},
		{code: "var o gnb.TrainOptions\no.Work|", match: "Workers"},
		{code: "ds := gnb.Must(gnb.Lo|ad(context.Background(), \"karate\"))\nfmt.Println(ds)", doc: "Load opens a dataset"},
		{code: "var o gnb.TrainOptions\no.Bat|ch = 7\nfmt.Println(o)", doc: "Batch is the number of"},
		{code: "own.Fi|", match: "First"},
		{code: "own.Sec|", match: "Second"},
	}
	var codes []string
	for _, c := range cases {
		switch {
		case c.match == "First":
			codes = append(codes, "!*go work use "+own)
		case c.match == "Second": // written after gopls has read the module
			codes = append(codes, "!echo 'func Second() {}' >> "+filepath.Join(own, "own.go"))
		}
		codes = append(codes, c.code)
	}
	got := completions(t, env, vars, codes, args...)
	for i, c := range cases {
		if g := got[i]; c.match != "" && (!slices.Contains(g.Matches, c.match) || g.Text == "" || !strings.HasPrefix(c.match, g.Text)) {
			t.Errorf("%q completes %q to %q, want %s among them", c.code, g.Text, g.Matches, c.match)
		}
		if !strings.Contains(got[i].Doc, c.doc) {
			t.Errorf("the documentation of %q is %q, want %q in it", c.code, got[i].Doc, c.doc)
		}
	}
}
