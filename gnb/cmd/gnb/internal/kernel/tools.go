package kernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ask"
	"github.com/graphnb/graphnb/internal/cudaheader"
)

// The tools' module is embedded in this binary, so that every installation gets the same versions.
// Its files have other names than go.mod and go.sum, which would make this directory a module.
// GoNB's version is pinned exactly, because workers and panels rely on how it composes and runs a
// cell.
var (
	//go:embed tools.mod
	toolsMod []byte
	//go:embed tools.sum
	toolsSum []byte
)

// Package paths that the tools' module builds: the programs that run cells, and gopls, which
// completes and explains names in a browser.
var (
	CellTools   = []string{"github.com/janpfeifer/gonb", "golang.org/x/tools/cmd/goimports"}
	EditorTools = []string{"golang.org/x/tools/gopls"}
)

// toolsStamp is the file next to the programs that records their sources. It is written after the
// programs.
const toolsStamp = "tools.stamp"

// PinnedGoNB returns the version of GoNB in the tools' module.
func PinnedGoNB() string {
	for line := range strings.Lines(string(toolsMod)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "github.com/janpfeifer/gonb" {
			return f[1]
		}
	}
	return ""
}

// toolsKey identifies the build that BuildTools would make.
func toolsKey(goVersion string) string {
	return fmt.Sprintf("%x\n", sha256.Sum256(bytes.Join([][]byte{toolsMod, toolsSum, []byte(goVersion)}, []byte{0})))
}

// BuildTools builds the programs of packages into bin, unless programs built from the same sources
// by the same Go version are already there.
func BuildTools(ctx context.Context, bin string, packages []string, logf func(format string, args ...any)) error {
	user, err := GoSettings(ctx, os.Environ())
	if err != nil {
		return err
	}
	key, current, err := toolsCurrent(ctx, bin, packages)
	if err != nil || current {
		return err
	}
	start := time.Now()
	names := strings.Join(toolNames(packages), " and ")
	logf("building %s (up to a minute the first time)", names)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("making the tools' directory: %w", err)
	}
	src, err := os.MkdirTemp("", "gnb-tools-")
	if err != nil {
		return fmt.Errorf("building the kernel's tools: %w", err)
	}
	defer os.RemoveAll(src)
	for name, b := range map[string][]byte{"go.mod": toolsMod, "go.sum": toolsSum} {
		if err := os.WriteFile(filepath.Join(src, name), b, 0o644); err != nil {
			return fmt.Errorf("building the kernel's tools: %w", err)
		}
	}
	flags := []string{"GOFLAGS=" + CellFlags(user.GOFLAGS), "GOWORK=off", "CGO_ENABLED=0"}
	if err := patchGoNB(ctx, src, packages, flags); err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	// Build elsewhere and rename, so that a running kernel keeps its program and bin never holds a
	// partial one.
	built := filepath.Join(src, "bin")
	err = runGo(ctx, src, append(flags, "GOBIN="+built), append([]string{"install"}, packages...)...)
	if err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	for _, name := range toolNames(packages) {
		b, err := os.ReadFile(filepath.Join(built, ExeName(name)))
		if err != nil {
			return fmt.Errorf("building the kernel's tools: %w", err)
		}
		if err := ReplaceFile(filepath.Join(bin, ExeName(name)), b, 0o755); err != nil {
			return err
		}
	}
	logf("built in %.0f s", time.Since(start).Seconds())
	return ReplaceFile(filepath.Join(bin, toolsStamp), []byte(key), 0o644)
}

// toolsCurrent reports whether the programs of packages in bin are up to date, and returns the key
// of the current build.
func toolsCurrent(ctx context.Context, bin string, packages []string) (key string, current bool, err error) {
	version, err := ask.Run(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return "", false, fmt.Errorf("go env GOVERSION: %w", err)
	}
	key = toolsKey(string(version)) + patchKey(packages)
	b, err := os.ReadFile(filepath.Join(bin, toolsStamp))
	return key, err == nil && string(b) == key && haveTools(bin, packages), nil
}

// HaveEditor reports whether gopls is in dir. The stamp is written last, so it proves that gopls is complete.
func HaveEditor(dir string) bool {
	return IsFile(filepath.Join(dir, toolsStamp)) && haveTools(dir, EditorTools)
}

// LeaveEditor removes gopls from bin unless it is the one that BuildTools would build, so that a later installation
// builds it. A kernel that runs by then starts it.
func LeaveEditor(ctx context.Context, bin string) error {
	dir := EditorDir(bin)
	if _, current, err := toolsCurrent(ctx, dir, EditorTools); err != nil || current {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("leaving gopls to a later installation: %w", err)
	}
	return nil
}

// toolNames returns the names of the packages' programs.
func toolNames(packages []string) []string {
	names := make([]string, len(packages))
	for i, p := range packages {
		names[i] = path.Base(p)
	}
	return names
}

func haveTools(bin string, packages []string) bool {
	for _, name := range toolNames(packages) {
		if info, err := os.Stat(filepath.Join(bin, ExeName(name))); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// warmPackage returns a package that fills the build cache as a cell would. It imports the
// library's packages for cells, the packages with which a cell draws, because the library
// itself does not import all packages of those modules, and those that GoNB adds to a cell.
func warmPackage(packages []string) string {
	text := "package warm\n\nimport (\n"
	for _, p := range append(packages, "gonum.org/v1/plot/plotter", "context", "flag", "fmt") {
		text += fmt.Sprintf("\t_ %q\n", p)
	}
	return text + ")\n"
}

// cellPackages returns the packages of the library in dir that cells import: gnb and the public
// packages below it, except those for programs outside notebooks.
func cellPackages(ctx context.Context, dir string, env []string) ([]string, error) {
	list, err := goOutput(ctx, dir, env, "list", "./gnb/...")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(list), func(p string) bool {
		rel := strings.TrimPrefix(p, ModulePath) + "/"
		return strings.Contains(rel, "/internal/") || strings.Contains(rel, "/cmd/") || strings.Contains(rel, "/published/")
	}), nil
}

// WarmCache builds a package that imports the library the way the kernel builds a cell. The user's
// build cache then holds all packages, and the first cell only links: seconds instead of about
// twenty. If the library does not build, the error appears now and not in the first cell. It links
// nothing, because a linked program is not cached.
func WarmCache(ctx context.Context, module, cudaInclude string, logf func(format string, args ...any)) error {
	start := time.Now()
	slow := time.AfterFunc(2*time.Second, func() { logf("building the library for the first cell (up to a minute the first time)") })
	defer slow.Stop()
	dir, err := os.MkdirTemp("", "gnb-warm-")
	if err != nil {
		return fmt.Errorf("building the library for the first cell: %w", err)
	}
	defer os.RemoveAll(dir)
	settings, err := GoSettings(ctx, os.Environ())
	if err != nil {
		return err
	}
	env := []string{"GOWORK=", "GOFLAGS=" + CellFlags(settings.GOFLAGS), "GOPROXY=" + cellProxy(settings)}
	if cudaInclude != "" {
		env[1] = "GOFLAGS=" + withTag(CellFlags(settings.GOFLAGS), "cuda")
		for name, value := range cudaheader.Env(cudaInclude, os.Getenv) {
			env = append(env, name+"="+value)
		}
	}
	packages, err := cellPackages(ctx, module, append(env, "GOWORK=off", "GOFLAGS="))
	if err != nil {
		return fmt.Errorf("building the library for the first cell: %w", err)
	}
	files := map[string]string{"warm.go": warmPackage(packages), "go.mod": "module gnbwarm\n\ngo 1.26.0\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("building the library for the first cell: %w", err)
		}
	}
	for _, args := range [][]string{{"work", "init", ".", module}, {"build", "."}} {
		if err := runGo(ctx, dir, env, args...); err != nil {
			return fmt.Errorf("building the library for the first cell: %w", err)
		}
	}
	if d := time.Since(start); d > 3*time.Second {
		logf("built the library for the first cell in %.0f s", d.Seconds())
	}
	return nil
}

// goOutput runs the go command in dir and returns its trimmed output.
func goOutput(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	text, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// rarely makes the compiler and the linker collect their garbage rarely, which saves a tenth to a third of their
// processor time. A GOGC that the user has set remains.
func rarely() []string {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=400"}
}

// runGo runs the go command in dir; its error includes the command's output.
func runGo(ctx context.Context, dir string, env []string, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	c.Env = slices.Concat(os.Environ(), rarely(), env)
	text, err := c.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), dir, err, strings.TrimSpace(string(text)))
	}
	return err
}
