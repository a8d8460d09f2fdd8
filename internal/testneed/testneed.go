// Package testneed skips tests: those that need something that the machine lacks, and those that are too slow for
// -short or for the race detector.
//
// The reason of a skip for want of a prerequisite begins "needs NAME: ". With CI=true or GNB_STRICT=1, any other skip
// fails "make test" (scripts/gotest.sh), and a test that is skipped although the machine has the prerequisite fails.
//
// A test states what it needs, and continues only if the machine has it:
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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Need is a prerequisite that a machine may lack.
type Need struct {
	Name string      // name in a skip's reason: "needs NAME: …"
	Way  string      // how to make the tests run
	Here func() bool // whether this machine has it, or can get it without user action
}

// The prerequisites of tests. Here does not check parts: Data is Here if the folder of real graphs
// exists, even if one of its files is missing.
var (
	Data = Need{
		"data",
		"set GNB_DATA to a folder with their files (planetoid/ind.cora.*, shchur/*.npz and others), or put it at ../shared/data",
		func() bool { info, err := os.Stat(DataDir()); return err == nil && info.IsDir() },
	}
	Chromium = Need{
		"chromium", "run scripts/browser.sh, as root the first time, or install Chromium and set GNB_CHROMIUM",
		func() bool { return ChromiumPath() != "" || canInstall() },
	}
	Superuser = Need{
		"root", "run the tests as root, in a container for instance",
		func() bool { return os.Geteuid() == 0 },
	}
	Network = Need{
		"network", "connect to the Python and Go package registries, or set PIP_INDEX_URL and GOPROXY to mirrors",
		online,
	}
	Cluster = Need{
		"cluster", "run scripts/cluster-tools.sh on Debian or Ubuntu with a network",
		func() bool { _, err := os.Stat(filepath.Join(ClusterDir(), "stamp")); return err == nil },
	}
	Partitioners = Need{
		"partitioners", "run scripts/cluster-tools.sh on Debian or Ubuntu with a network, or install the packages metis and scotch",
		func() bool { return partitioner("gpmetis") && partitioner("scotch_gpart", "gpart") },
	}
	Hosts = Need{
		"hosts", "allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0), and install iproute2",
		hosts,
	}
	Tun = Need{
		"tun", "run the tests as root, or let users open /dev/net/tun (modprobe tun; chmod 666 /dev/net/tun)",
		func() bool {
			f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
			return err == nil && f.Close() == nil && hosts()
		},
	}
	GitCommand = Need{
		"git", "install git",
		func() bool { _, err := exec.LookPath("git"); return err == nil },
	}
	Soak = Need{
		"soak", "run make soak, or set GNB_SOAK=1",
		func() bool { return envknob.Soak.Get() != "" },
	}
	Python = Need{
		"python", "run \"make test\", or scripts/venv.sh and then the tests with GNB_PYTHON=$PWD/.venv/bin/python3",
		func() bool { _, err := os.Stat(filepath.Join(root(), ".venv", "bin", "python3")); return err == nil },
	}
)

// Skip skips a test because the machine lacks n. If the machine has n after all, and skips are errors (CI=true or
// GNB_STRICT=1), the test fails.
func Skip(t testing.TB, n Need, format string, args ...any) {
	t.Helper()
	why := "needs " + n.Name + ": " + fmt.Sprintf(format, args...) + "; to run it: " + n.Way
	if strict() && n.Here() {
		t.Fatal(why + "; this machine has it, and GNB_STRICT=1 or CI=true makes the skip an error")
	}
	t.Skip(why)
}

// strict reports whether a skip is an error. Runs with -short leave out tests on purpose.
func strict() bool {
	return !testing.Short() && (envknob.Strict.Get() == "1" || os.Getenv("CI") == "true")
}

// Git skips the test without the command git.
func Git(t testing.TB) {
	t.Helper()
	if !GitCommand.Here() {
		Skip(t, GitCommand, "it is not on PATH")
	}
}

// RealData returns the path of a file or folder of the public graphs (name has slashes), or skips
// the test.
func RealData(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(DataDir(), filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		Skip(t, Data, "there is no %s among them", name)
	}
	return path
}

// DataDir returns the absolute path of the folder of the public graphs, which may not exist:
// GNB_DATA, or shared/data beside the checkout.
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

// PartitionersDir returns the folder with the partitioners that scripts/cluster-tools.sh gets.
func PartitionersDir() string { return filepath.Join(ClusterDir(), "partition", "bin") }

// partitioner is whether a program under one of its names is on PATH or in that folder.
func partitioner(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := exec.LookPath(name)
		if err != nil {
			_, err = exec.LookPath(filepath.Join(PartitionersDir(), name))
		}
		return err == nil
	})
}

// ClusterDir returns the folder of scripts/cluster-tools.sh, which may not exist.
func ClusterDir() string { return filepath.Join(root(), ".cluster") }

// hosts reports whether this user can make network namespaces and join them.
var hosts = sync.OnceValue(func() bool {
	return exec.Command("unshare", "-Urnm", "sh", "-c", "ip link add v1 type veth peer name v2 && tc -V").Run() == nil
})

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if !Superuser.Here() {
		Skip(t, Superuser, "this is user %d", os.Geteuid())
	}
}

// PyPI skips a test that installs Python packages if none can be downloaded.
func PyPI(t testing.TB) {
	t.Helper()
	if !online() {
		Skip(t, Network, "the Python Package Index is out of reach")
	}
}

// PythonWith returns a Python interpreter that can import a module ("numpy"), named by GNB_PYTHON,
// or skips the test.
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

// ChromiumPath returns the browser for tests: the one in GNB_CHROMIUM, or the first on PATH, or "".
func ChromiumPath() string {
	for _, name := range []string{envknob.Chromium.Get(), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// canInstall reports whether scripts/browser.sh can install a browser here.
func canInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// online reports whether Python packages can be downloaded, from the index or a mirror that pip is
// configured for.
var online = sync.OnceValue(func() bool {
	exe := filepath.Join(root(), ".venv", "bin", "python3")
	if _, err := os.Stat(exe); err != nil {
		exe = "python3"
	}
	// Without retries it takes a second, or its timeout if no server answers.
	return exec.Command(exe, "-m", "pip", "--disable-pip-version-check", "--retries", "0", "--timeout", "5", "index", "versions", "pip").Run() == nil
})

// root returns the checkout: the nearest parent of the working directory with a go.mod of this
// module.
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
