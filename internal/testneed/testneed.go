// Package testneed skips tests for want of something that a machine may lack, in words from which
// internal/testrun tells such a skip from any other: the reason begins "needs NAME: ".
//
// A test asks for what it needs, and goes on only where that is there:
//
//	path := testneed.RealData(t, "planetoid/ind.cora.graph")
//	testneed.Root(t)
//	testneed.Skip(t, testneed.Chromium, "no browser on PATH")
package testneed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Need is something that a machine may lack.
type Need struct {
	Name string      // in a skip's reason: "needs NAME: …"
	What string      // for people, as in "for want of …"
	Way  string      // what makes the tests run
	Here func() bool // whether this machine has it, or can have it without asking anybody
}

// What tests need. Here says nothing of a part: where the folder of real graphs is there and one of its
// files is not, data is Here.
var (
	Data = Need{
		"data", "the public graphs",
		"set GNB_DATA to a folder with their files (planetoid/ind.cora.*, shchur/*.npz and others), or put it at ../shared/data",
		func() bool { info, err := os.Stat(DataDir()); return err == nil && info.IsDir() },
	}
	Chromium = Need{
		"chromium", "a browser", "run scripts/browser.sh, as root the first time, or install Chromium and set GNB_CHROMIUM",
		func() bool { return ChromiumPath() != "" || canInstall() },
	}
	Superuser = Need{
		"root", "root's rights", "run the tests as root, in a container for instance",
		func() bool { return os.Geteuid() == 0 },
	}
	Network = Need{
		"network", "a network", "connect to the Python and Go package registries, or set PIP_INDEX_URL and GOPROXY to mirrors",
		online,
	}
	Python = Need{
		"python", "the tests' Python packages", "run \"make test\", or scripts/venv.sh and then the tests with GNB_PYTHON=$PWD/.venv/bin/python3",
		func() bool { _, err := os.Stat(filepath.Join(root(), ".venv", "bin", "python3")); return err == nil },
	}
)

// All returns the needs that a reason can name.
func All() []Need { return []Need{Data, Chromium, Superuser, Network, Python} }

// Skip skips a test for want of n.
func Skip(t testing.TB, n Need, format string, args ...any) {
	t.Helper()
	t.Skip("needs " + n.Name + ": " + fmt.Sprintf(format, args...))
}

var reasonLine = regexp.MustCompile(`^needs (\w+): (.*)$`)

// Of returns the need that a skip's reason names and what it says beside that; ok is false where it names none.
func Of(reason string) (n Need, why string, ok bool) {
	m := reasonLine.FindStringSubmatch(reason)
	if m == nil {
		return Need{}, reason, false
	}
	for _, n := range All() {
		if n.Name == m[1] {
			return n, m[2], true
		}
	}
	return Need{}, reason, false
}

// RealData returns the path of a file or folder of the public graphs, with slashes in name, or skips the test.
func RealData(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(DataDir(), filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		Skip(t, Data, "there is no %s among them", name)
	}
	return path
}

// DataDir returns the folder of the public graphs, which need not be there: GNB_DATA, or shared/data beside
// the checkout. It is absolute.
func DataDir() string {
	dir := envknob.Data.Get()
	if dir == "" {
		dir = filepath.Join(root(), "..", "shared", "data")
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// Root skips a test that only root can run.
func Root(t testing.TB) {
	t.Helper()
	if !Superuser.Here() {
		Skip(t, Superuser, "this is user %d", os.Geteuid())
	}
}

// PyPI skips a test that installs Python packages where none can be had.
func PyPI(t testing.TB) {
	t.Helper()
	if !online() {
		Skip(t, Network, "the Python Package Index is out of reach")
	}
}

// PythonWith returns a Python that can import a module ("numpy"), which GNB_PYTHON names, or skips the test.
func PythonWith(t testing.TB, module string) string {
	t.Helper()
	exe := envknob.Python.Get()
	if exe == "" {
		exe = "python3"
	}
	if out, err := exec.Command(exe, "-c", "import "+module).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		Skip(t, Python, "%s cannot import %s: %v: %s", exe, module, err, lines[len(lines)-1])
	}
	return exe
}

// ChromiumPath returns the browser of the tests: the one of GNB_CHROMIUM, or the first on PATH, or "".
func ChromiumPath() string {
	for _, name := range []string{envknob.Chromium.Get(), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// canInstall is whether scripts/browser.sh installs a browser here.
func canInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// online is whether Python packages can be had, from the index or a mirror: pip knows which.
var online = sync.OnceValue(func() bool {
	exe := filepath.Join(root(), ".venv", "bin", "python3")
	if _, err := os.Stat(exe); err != nil {
		exe = "python3"
	}
	// Without retries it takes a second, or the seconds of its limit where nothing answers.
	return exec.Command(exe, "-m", "pip", "--disable-pip-version-check", "--retries", "0", "--timeout", "5", "index", "versions", "pip").Run() == nil
})

// root returns the checkout: the nearest directory above the working directory that has a go.mod of this module.
func root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Stat(filepath.Join(up, "go.mod")); err == nil {
			return up
		}
		if filepath.Dir(up) == up {
			return dir
		}
	}
}
