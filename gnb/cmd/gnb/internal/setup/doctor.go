package setup

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Doctor is "gnb doctor".
var Doctor = cli.Command{Name: "doctor", Summary: "check that this machine has what notebooks and training need", Run: doctor}

const doctorHelp = `
Checks this program, the system, Go, Python, Jupyter, the kernel, PATH, memory, shared memory, disk,
GPUs and their libraries. Prints what it found and how to fix what is wrong. The exit status is 1
when a check fails. A missing GPU is no failure: training then runs on the CPU. A cell
runs it by "!gnb doctor". "gnb doctor --json" is what an issue report asks for.`

// The oldest supported versions: Go's from go.mod, and Python's from the pinned Jupyter client.
const (
	minGo     = "go1.26"
	minPython = "3.10"
)

// good and bad make the two outcomes of a check.
func good(format string, args ...any) check {
	return check{OK: true, Detail: fmt.Sprintf(format, args...)}
}

func bad(fix, format string, args ...any) check {
	return check{Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// patient is the system that the doctor checks.
type patient struct {
	kernelName string
	jupyter    []string // Jupyter data directories, the preferred one first
	places     []place
}

// place is a directory in which data is stored.
type place struct {
	what string
	env  string // environment variable that sets it
	dir  string // may not exist yet
}

// places returns the directories of runs, datasets and temporary files.
func places() []place {
	out := []place{{"runs", envknob.Runs.Name, runs.Dir()}, {"temporary files", "TMPDIR", os.TempDir()}}
	if home, err := registry.Home(); err == nil {
		out = append(out, place{"datasets", envknob.Home.Name, home})
	}
	return out
}

// existing returns the directory or, if it does not exist yet, its nearest existing parent.
func (p place) existing() (string, error) {
	dir, err := filepath.Abs(p.dir)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory", dir)
		case err == nil:
			return dir, nil
		case !errors.Is(err, os.ErrNotExist) || filepath.Dir(dir) == dir:
			return "", err
		}
		dir = filepath.Dir(dir)
	}
}

// examinations are the checks, in the order shown.
var examinations = []struct {
	name string
	look func(ctx context.Context, p patient) check
}{
	{"gnb", checkBuild},
	{"system", checkSystem},
	{"go", checkGo},
	{"python", checkPython},
	{"jupyter", checkJupyter},
	{"kernel", checkKernel},
	{"path", checkPath},
	{"memory", checkMemory},
	{"shared memory", checkSharedMemory},
	{"disk", checkDisk},
	{"gpu", checkGPU},
	{"nvml", checkNVML},
	{"cublas", checkCuBLAS},
	{"nccl", checkNCCL},
	{"cuda cells", checkCUDABuild},
	{"mpi", checkMPI},
}

func doctor(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("", doctorHelp)
	prefix := fs.String("prefix", "", "Python `prefix` of the kernel (default active environment, then user's)")
	name := fs.String("name", cmp.Or(envknob.Kernel.Get(), kernelName), "`name` of the kernelspec (default the notebook's own)")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	p := patient{kernelName: *name, jupyter: jupyterDirs(*prefix), places: places()}
	var checks []check
	var failed []string
	for _, e := range examinations {
		limit, cancel := context.WithTimeout(ctx, 20*time.Second)
		c := e.look(limit, p)
		cancel()
		c.Name = e.name
		checks = append(checks, c)
		if !c.OK {
			failed = append(failed, c.Name)
		}
		out.Printf("%s", c)
	}
	out.Result(struct {
		Checks []check `json:"checks"`
	}{checks})
	if len(failed) > 0 {
		// The result stays the last event: it holds the findings, and the exit status tells
		// whether one failed.
		out.Logf("gnb doctor: %s failed: %s", phrase.Count(len(failed), "check"), strings.Join(failed, ", "))
		return cli.ExitStatus(cli.StatusFailed)
	}
	return nil
}

func checkGo(ctx context.Context, _ patient) check {
	const fix = "install Go " + minGo + " or newer from https://go.dev/dl/ and put its bin directory on PATH"
	path, err := exec.LookPath("go")
	if err != nil {
		return bad(fix, "there is no go command on PATH; cells are compiled with it")
	}
	b, err := ask.Run(ctx, path, "env", "GOVERSION")
	if err != nil {
		return bad(fix, "%s does not run: %v", path, err)
	}
	v := strings.TrimSpace(string(b))
	if word := strings.Fields(v); len(word) > 0 && version.IsValid(word[0]) && version.Compare(word[0], minGo) < 0 {
		return bad(fix, "%s is %s; GraphNB needs %s or newer", path, v, minGo)
	}
	return good("%s at %s", v, path)
}

// python returns the kernel's interpreter: the active environment's, else python3.
func python(p patient) string {
	for _, dir := range p.jupyter {
		// dir is PREFIX/share/jupyter
		if exe := filepath.Join(dir, "..", "..", "bin", "python3"); kernel.IsFile(exe) {
			return filepath.Clean(exe)
		}
	}
	return "python3"
}

func checkPython(ctx context.Context, p patient) check {
	const fix = "install Python " + minPython + " or newer (Debian: apt install python3 python3-venv); only Jupyter needs it"
	exe := python(p)
	b, err := ask.Run(ctx, exe, "-c", "import sys; print('go%d.%d.%d' % sys.version_info[:3])")
	if err != nil {
		return bad(fix, "%s does not run: %v", exe, err)
	}
	v := strings.TrimSpace(string(b)) // a Go version, for its comparison
	if version.Compare(v, "go"+minPython) < 0 {
		return bad(fix, "%s is Python %s; Jupyter's client needs %s or newer", exe, strings.TrimPrefix(v, "go"), minPython)
	}
	return good("Python %s at %s", strings.TrimPrefix(v, "go"), exe)
}

// jupyterProbe prints the versions of the installed Jupyter packages.
const jupyterProbe = `
from importlib.metadata import version, PackageNotFoundError
for name in ("jupyterlab", "notebook", "nbclassic", "nbclient", "jupyter_client"):
    try: print(name, version(name))
    except PackageNotFoundError: pass
`

func checkJupyter(ctx context.Context, p patient) check {
	exe := python(p)
	b, err := ask.Run(ctx, exe, "-c", jupyterProbe)
	found := strings.Join(strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' }), ", ")
	if err == nil && strings.Contains(found, "jupyter_client") {
		return good("%s", found)
	}
	if path, err := exec.LookPath("jupyter"); err == nil {
		return good("%s", path)
	}
	return bad("python3 -m venv .venv && . .venv/bin/activate && pip install jupyterlab", "%s has no Jupyter, and there is no jupyter command on PATH", exe)
}

func checkKernel(ctx context.Context, p patient) check {
	const fix = "run \"gnb install\""
	var file string
	var b []byte
	for _, dir := range p.jupyter {
		f := filepath.Join(dir, "kernels", p.kernelName, "kernel.json")
		text, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return bad(fix, "%v", err)
		}
		file, b = f, text
		break
	}
	if file == "" {
		return bad(fix, "no kernel %q in %s", p.kernelName, strings.Join(p.jupyter, " or "))
	}
	var spec kernelSpec
	if err := json.Unmarshal(b, &spec); err != nil {
		return bad(fix, "%s is damaged: %v", file, err)
	}
	gonb, headless := "", spec.Env[envknob.Headless.Name] != ""
	for _, a := range spec.Argv {
		base := strings.TrimSuffix(filepath.Base(a), ".exe")
		if filepath.IsAbs(a) && (base == "gonb" || base == "gnb") && !kernel.IsFile(a) {
			return bad(fix, "%s starts %s, which does not exist", file, a)
		}
		if base == "gonb" {
			gonb = a
		}
	}
	if gonb == "" {
		return bad(fix, "%s does not start GoNB", file)
	}
	module := spec.Metadata["graphnb_module"]
	if err := isModule(module); err != nil {
		return bad(fix, "%s: %v", file, err)
	}
	if _, err := ask.Run(ctx, gonb, "-V"); err != nil {
		return bad(fix, "%s does not run: %v", gonb, err)
	}
	// Some releases print an outdated version with -V; the build information is always right.
	info, err := buildinfo.ReadFile(gonb)
	if err != nil {
		return bad(fix, "%s: %v", gonb, err)
	}
	if want := kernel.PinnedGoNB(); info.Main.Version != want {
		return bad(fix, "%s is GoNB %s; this gnb needs %s", gonb, info.Main.Version, want)
	}
	if !headless && !kernel.HaveEditor(kernel.EditorDir(filepath.Dir(gonb))) {
		return good("%q in %s, GoNB %s, library %s; gopls is not there, and names complete once it is (\"make lab\" or \"gnb install\" builds it)", spec.DisplayName, filepath.Dir(file), info.Main.Version, module)
	}
	return good("%q in %s, GoNB %s, library %s", spec.DisplayName, filepath.Dir(file), info.Main.Version, module)
}

func checkPath(_ context.Context, _ patient) check {
	self, err := os.Executable()
	if err != nil {
		return bad("run gnb by its full path", "finding this program: %v", err)
	}
	path, err := exec.LookPath("gnb")
	if err != nil {
		if strings.Contains(self, "go-build") {
			return good("run by \"go run\"; \"go install %s/gnb/cmd/gnb\" puts gnb on PATH", kernel.ModulePath)
		}
		return good("gnb is not on PATH; this one is %s", self)
	}
	a, errA := os.Stat(path)
	b, errB := os.Stat(self)
	if errA == nil && errB == nil && !os.SameFile(a, b) {
		return good("gnb on PATH is %s; this one is %s", path, self)
	}
	return good("gnb is %s", path)
}

// jupyterDirs returns the data directories to search for the kernel: that of the given prefix or
// of the kernel that owns this gnb, the active environment's, and the user's.
func jupyterDirs(prefix string) []string {
	var dirs []string
	if prefix == "" {
		prefix = environmentPrefix()
		if self, err := os.Executable(); err == nil {
			if dir := filepath.Join(filepath.Dir(self), "..", ".."); filepath.Dir(self) == kernel.ToolsDir(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	if prefix != "" {
		if dir, err := jupyterDir(prefix, false); err == nil {
			dirs = append(dirs, dir)
		}
	}
	if dir, err := userJupyterDir(); err == nil {
		dirs = append(dirs, dir)
	}
	return dirs
}
