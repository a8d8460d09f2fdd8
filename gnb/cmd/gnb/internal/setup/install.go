// Package setup prepares a machine: it installs the notebook kernel and removes it, checks what a machine has ("gnb doctor"), and
// says what this program was built with.
package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
	"github.com/graphnb/graphnb/internal/envknob"
)

// kernelName is the kernelspec's default name. It is not "gonb", so that an existing GoNB kernel
// stays unchanged.
const kernelName = "graphnb"

// display is the kernel's default display name.
const display = "Go (GraphNB)"

// Install is "gnb install".
var Install = cli.Command{Name: "install", Summary: "install the notebook kernel \"Go (GraphNB)\"", Run: install}

const installHelp = `
Builds GoNB, goimports and gopls at the versions that belong to this program, and adds the kernel
"Go (GraphNB)" to Jupyter; other kernels stay. Cells of the kernel can import
` + kernel.ModulePath + `/gnb without a go.mod of their own. They get the release of this
program or, with --dev and in a checkout, the checkout: a change of it takes effect in the next cell.
The library is built once, so that the first cell is fast. The kernel goes into the active virtual
environment or, if there is none, into the user's Jupyter directory. A second installation takes
seconds. "gnb uninstall" removes everything.

--cuda adds another kernel, "Go (GraphNB, CUDA)", whose cells can use a GPU. It needs a C compiler but
not CUDA. On a machine without a GPU its cells run on the CPU.`

// moduleKey is the entry of a kernelspec's metadata that holds the module from which cells import.
// It marks the kernel as installed by gnb.
const moduleKey = "graphnb_module"

// kernelSpec is the kernel.json that Jupyter reads.
type kernelSpec struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Env           map[string]string `json:"env"`
	Metadata      map[string]string `json:"metadata"`
}

// installOptions are install's flags.
type installOptions struct {
	prefix, name, display, dev, data string
	user, rawError, headless         bool
	editorLater                      bool
	cuda, wheels                     bool
	cudaInclude                      string   // the header's directory, with cuda
	gotWheels                        []string // wheels that installations of this kernel added with pip
}

// environment returns the kernel's Python environment, or "".
func (o installOptions) environment() string { return cmp.Or(o.prefix, environmentPrefix()) }

func install(ctx context.Context, args []string, out *cli.Output) error {
	var o installOptions
	fs := out.Flags("", installHelp)
	fs.StringVar(&o.prefix, "prefix", "", "Python `prefix` to install into (default the active environment)")
	fs.BoolVar(&o.user, "user", false, "install into the user's Jupyter directory")
	fs.StringVar(&o.name, "name", kernelName, "`name` of the kernelspec")
	fs.StringVar(&o.display, "display", display, "`name` shown in Jupyter's launcher")
	fs.StringVar(&o.dev, "dev", "", "checkout `directory` that cells import (default this release or checkout)")
	fs.StringVar(&o.data, "data", "", "`directory` of downloaded files of published datasets (GNB_DATA)")
	fs.BoolVar(&o.rawError, "raw-error", false, "plain-text compile errors, for notebooks without a browser")
	fs.BoolVar(&o.headless, "headless", false, "install for notebooks without a browser, without gopls (GNB_HEADLESS)")
	fs.BoolVar(&o.editorLater, "editor-later", false, "skip gopls, which a later installation adds to running kernels")
	fs.BoolVar(&o.cuda, "cuda", false, "install a kernel whose cells can use GPUs")
	fs.BoolVar(&o.wheels, "wheels", false, "with --cuda, install missing cuBLAS and NCCL from PyPI")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	switch {
	case o.wheels && !o.cuda:
		return cli.Usagef("--wheels needs --cuda")
	case o.cuda && o.name == kernelName:
		o.name = cudaKernelName
	}
	if o.cuda && o.display == display {
		o.display = cudaDisplay
	}
	if err := checkKernelName(o.name); err != nil {
		return err
	}
	start := time.Now()
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command is not on PATH, and cells are compiled with it; install Go from https://go.dev/dl/")
	}
	if o.dev == "" {
		dir, err := moduleDir(ctx)
		if err != nil {
			return err
		}
		o.dev = dir
	}
	module, err := filepath.Abs(o.dev)
	if err != nil {
		return err
	}
	if err := isModule(module); err != nil {
		return err
	}
	jupyter, err := jupyterDir(o.prefix, o.user)
	if err != nil {
		return err
	}
	file := filepath.Join(jupyter, "kernels", o.name, "kernel.json")
	before, err := isFree(file)
	if err != nil {
		return err
	}
	o.gotWheels = strings.Fields(before.Metadata[wheelsKey])
	bin := kernel.ToolsDir(jupyter)
	if err := kernel.BuildTools(ctx, bin, kernel.CellTools, out.Logf); err != nil {
		return err
	}
	if err := copySelf(filepath.Join(bin, kernel.ExeName("gnb"))); err != nil {
		return err
	}
	switch {
	case o.headless:
	case o.editorLater:
		if err := kernel.LeaveEditor(ctx, bin); err != nil {
			return err
		}
	default:
		if err := kernel.BuildTools(ctx, kernel.EditorDir(bin), kernel.EditorTools, out.Logf); err != nil {
			return err
		}
	}
	if o.cuda {
		if o.cudaInclude, err = prepareCUDA(ctx, module, bin); err != nil {
			return err
		}
		got, err := offerWheels(ctx, o.environment(), o.wheels, out)
		if err != nil {
			return err
		}
		o.gotWheels = append(o.gotWheels, got...)
	}
	if err := kernel.WarmCache(ctx, module, o.cudaInclude, out.Logf); err != nil {
		return err
	}
	if err := writeSpec(file, newSpec(o, bin, module)); err != nil {
		return err
	}
	out.Printf("kernel %q in %s\ncells import %s from %s\n", o.display, file, kernel.ModulePath, module)
	out.Result(struct {
		Kernel  string  `json:"kernel"`
		File    string  `json:"file"`
		Module  string  `json:"module"`
		Tools   string  `json:"tools"`
		Seconds float64 `json:"seconds"`
	}{o.name, file, module, bin, time.Since(start).Seconds()})
	return nil
}

// newSpec returns the kernelspec for the tools in bin and the library in module. It omits settings
// of the Go command: "gnb kernel" reads them when a kernel starts, so that later changes of proxy
// or toolchain take effect.
func newSpec(o installOptions, bin, module string) kernelSpec {
	spec := kernelSpec{
		Argv: []string{
			filepath.Join(bin, kernel.ExeName("gnb")), "kernel", "--go-bin=" + goBin(),
			filepath.Join(bin, kernel.ExeName("gonb")), "--kernel", "{connection_file}",
			fmt.Sprintf("-raw_error=%t", o.rawError), "-go_work=" + module,
		},
		DisplayName:   o.display,
		Language:      "go",
		InterruptMode: "message",
		Env:           map[string]string{envknob.Kernel.Name: o.name},
		Metadata:      map[string]string{moduleKey: module},
	}
	if o.data != "" {
		spec.Env[envknob.Data.Name] = o.data
	}
	if o.headless {
		spec.Env[envknob.Headless.Name] = "1"
	}
	if o.cudaInclude != "" {
		spec.Env[envknob.CUDAInclude.Name] = o.cudaInclude
		if prefix := o.environment(); prefix != "" {
			spec.Env[envknob.Venv.Name] = prefix // where runs look for wheels
		}
		if len(o.gotWheels) > 0 {
			spec.Metadata[wheelsKey] = strings.Join(o.gotWheels, " ")
			spec.Metadata[prefixKey] = o.environment()
		}
	}
	return spec
}

// isFree fails if file holds a kernelspec that install did not write, because install must not
// overwrite other kernels. Otherwise it returns the existing kernelspec, if any.
func isFree(file string) (kernelSpec, error) {
	spec, err := readSpec(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return kernelSpec{}, nil
	case err != nil:
		return spec, fmt.Errorf("%w; remove it, or choose another --name", err)
	case spec.Metadata[moduleKey] == "":
		return spec, fmt.Errorf("%s is the kernel %q, which GraphNB did not install and does not change; choose another --name", file, spec.DisplayName)
	}
	return spec, nil
}

// readSpec reads any program's kernelspec.
func readSpec(file string) (kernelSpec, error) {
	// Read only this entry: the rest of another program's kernelspec may have any form.
	var s struct {
		Argv        []string       `json:"argv"`
		DisplayName string         `json:"display_name"`
		Metadata    map[string]any `json:"metadata"`
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return kernelSpec{}, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return kernelSpec{}, fmt.Errorf("%s is damaged: %w", file, err)
	}
	spec := kernelSpec{Argv: s.Argv, DisplayName: s.DisplayName, Metadata: map[string]string{}}
	for key, value := range s.Metadata {
		if text, ok := value.(string); ok {
			spec.Metadata[key] = text
		}
	}
	return spec, nil
}

// writeSpec writes spec to a temporary file and renames it, so that Jupyter never reads a partial
// file.
func writeSpec(file string, spec kernelSpec) error {
	b, err := json.MarshalIndent(spec, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the kernelspec: %w", err)
	}
	return kernel.ReplaceFile(file, append(b, '\n'), 0o644)
}

// jupyterDir returns the Jupyter data directory for the kernel: the prefix's, or the user's.
func jupyterDir(prefix string, user bool) (string, error) {
	if prefix == "" && !user {
		prefix = environmentPrefix()
	}
	if prefix != "" && !user {
		if info, err := os.Stat(prefix); err != nil || !info.IsDir() {
			return "", fmt.Errorf("--prefix %s is not a directory; make it with \"python3 -m venv %s\"", prefix, prefix)
		}
		return filepath.Abs(filepath.Join(prefix, "share", "jupyter"))
	}
	return userJupyterDir()
}

// environmentPrefix is the active virtual or conda environment, or "".
func environmentPrefix() string {
	if p := os.Getenv("VIRTUAL_ENV"); p != "" {
		return p
	}
	return os.Getenv("CONDA_PREFIX")
}

// userJupyterDir returns the directory that "jupyter --data-dir" prints.
func userJupyterDir() (string, error) {
	if d := os.Getenv("JUPYTER_DATA_DIR"); d != "" {
		return d, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's Jupyter directory: %w; set JUPYTER_DATA_DIR or pass --prefix", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Jupyter"), nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "jupyter"), nil
	}
	return filepath.Join(home, ".local", "share", "jupyter"), nil
}

// moduleDir returns the directory of the library for cells: in the module cache if this program
// was built from a release, else the checkout that contains the working directory. A go.work file
// can use both.
func moduleDir(ctx context.Context) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Sum == "" { // only a downloaded module has a checksum
		out, err := ask.Run(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", kernel.ModulePath)
		if path, dir, ok := strings.Cut(strings.TrimSpace(string(out)), " "); err == nil && ok && path == kernel.ModulePath {
			return dir, nil
		}
		return "", fmt.Errorf("this gnb was built from a checkout, and cells need its directory: run it there, or pass --dev DIR with a checkout of %s", kernel.ModulePath)
	}
	c := exec.CommandContext(ctx, "go", "mod", "download", "-json", kernel.ModulePath+"@"+info.Main.Version)
	c.Dir = os.TempDir() // outside any module
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s@%s: %w", kernel.ModulePath, info.Main.Version, err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("go mod download -json: %w", err)
	}
	return m.Dir, nil
}

// isModule returns an error if dir is not the library's directory.
func isModule(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("the library's directory %s has no readable go.mod: %w", dir, err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "module" && f[1] == kernel.ModulePath {
			return nil
		}
	}
	return fmt.Errorf("%s is not the module %s; pass --dev with a checkout of it", filepath.Join(dir, "go.mod"), kernel.ModulePath)
}

// copySelf keeps a copy of this program at file: "go run" removes its own at the end.
func copySelf(file string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("copying this program beside the kernel: %w", err)
	}
	return kernel.ReplaceFile(file, b, 0o755)
}

// checkKernelName refuses a name that cannot be the name of a kernel's directory.
func checkKernelName(name string) error {
	if name == "" || name[0] == '.' || strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }) {
		return cli.Usagef("--name %q: a kernelspec's name has letters, digits, '.', '-' and '_' only, and does not begin with '.'", name)
	}
	return nil
}

func isNameRune(r rune) bool {
	return r == '.' || r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// goBin returns the directory of the go command on PATH, for kernels started by a Jupyter whose
// PATH lacks it (a desktop's launcher).
func goBin() string {
	p, err := exec.LookPath("go")
	if err != nil {
		return ""
	}
	p, err = filepath.Abs(p)
	if err != nil {
		return ""
	}
	return filepath.Dir(p)
}
