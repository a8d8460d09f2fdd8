//go:build unix

// Package labtest runs notebooks in a real JupyterLab in a headless Chromium, for tests and pictures.
//
//	lab := labtest.Start(t, "GNB_SMALL=1")
//	lab.Copy(t, "../../notebooks/explore.ipynb")
//	var facts struct{ Looks int }
//	lab.Script(t, "explore.mjs", map[string]any{"notebook": "explore.ipynb"}, &facts)
//
// Scripts drive the page with playwright-core (see lab.mjs) and print their observations as JSON.
// scripts/browser.sh installs what they need; without it, tests are skipped, and the reason names
// the command to run.
package labtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Kernel is the kernelspec of notebooks: the name that users have, installed in the checkout's
// environment.
const Kernel = "graphnb"

// Lab is a separate JupyterLab server without any user's settings, kernels or notebooks.
type Lab struct {
	Dir string // its notebooks; cells run there
	Tmp string // TMPDIR of the server, its kernels and their cells
	Out string // for the scripts' output; kept if GNB_LAB_OUT names a directory
	URL string

	host  *nbtest.Env
	token string
}

// Start installs the kernel and starts a server, which stops when the test ends. env ("NAME=value")
// is added to the cells' environment.
func Start(t testing.TB, env ...string) *Lab {
	t.Helper()
	host := nbtest.Setup(t)
	if testneed.ChromiumPath() == "" {
		testneed.Skip(t, testneed.Chromium, "there is none on PATH")
	}
	bin := filepath.Dir(host.Python)
	for _, file := range []string{filepath.Join(bin, "jupyter-lab"), filepath.Join(bin, "node"), modules(host)} {
		if _, err := os.Stat(file); err != nil {
			testneed.Skip(t, testneed.Chromium, "there is no %s; scripts/browser.sh installs it", file)
		}
	}
	if err := host.Install("--name", Kernel); err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: workers listen on sockets below it, whose paths are limited to 107 bytes.
	home, err := os.MkdirTemp("", "gnb-lab-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	l := &Lab{Dir: t.TempDir(), Tmp: filepath.Join(home, "tmp"), Out: envknob.LabOut.Get(), host: host, token: "for-tests"}
	if l.Out == "" {
		l.Out = t.TempDir()
	}
	for _, dir := range []string{l.Tmp, l.Out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		// All cells are rendered, even those out of view.
		"notebook-extension/tracker": `{"windowingMode": "none"}`,
		// No dialog asks whether to show Jupyter's news, which would cover the cells.
		"apputils-extension/notification": `{"fetchNews": "false", "checkForUpdates": false}`,
	} {
		file = filepath.Join(home, "lab", "user-settings", "@jupyterlab", file+".jupyterlab-settings")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(filepath.Join(host.Root, "docker", "jupyter_server_config.py"))
	if err != nil {
		t.Fatal(err)
	}
	// Kernels get ports that no other process is given (see ports.py).
	config = fmt.Appendf(config, "import sys\nsys.path.append(%q)\nimport ports\n", filepath.Join(host.Root, "internal", "nbtest"))
	if err := os.WriteFile(filepath.Join(home, "jupyter_server_config.py"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := nbtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l.URL = "http://127.0.0.1:" + port
	c := exec.Command(filepath.Join(bin, "jupyter-lab"), "--no-browser", "--ip=127.0.0.1", "--port="+port, "--allow-root",
		"--ServerApp.port_retries=0", "--IdentityProvider.token="+l.token, "--LabApp.expose_app_in_browser=True", "--ServerApp.root_dir="+l.Dir)
	// Go's caches stay the user's: by default they are below HOME, which is replaced.
	cache, modcache, err := goCaches()
	if err != nil {
		t.Fatal(err)
	}
	// Headless: no test here completes names, and each kernel's gopls would take 20 s of processor time.
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "GOCACHE="+cache, "GOMODCACHE="+modcache, "TMPDIR="+l.Tmp,
		"JUPYTER_PREFER_ENV_PATH=1", "JUPYTER_CONFIG_DIR="+home, "JUPYTER_DATA_DIR="+home, "JUPYTER_RUNTIME_DIR="+home, envknob.Runs.Name+"=", envknob.Headless.Name+"=1")
	c.Env = append(c.Env, env...)
	log, err := os.Create(filepath.Join(l.Out, "jupyter.log"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { stop(t, c, ended, log) })
	for deadline := time.Now().Add(time.Minute); !l.answers(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("labtest: JupyterLab does not answer after a minute:\n%s", text)
		}
	}
	return l
}

// stop stops the server, which stops its kernels.
func stop(t testing.TB, c *exec.Cmd, ended <-chan error, log io.Closer) {
	_ = c.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-ended
		t.Error("labtest: JupyterLab did not end within 20 s")
	}
	_ = log.Close()
}

func (l *Lab) answers() bool {
	r, err := http.Get(l.URL + "/api/status?token=" + l.token)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// Copy copies a notebook into the server's directory without its saved outputs, so that a test sees
// only new outputs. In its text, each old string of the pairs in oldNew becomes the new one; the test
// fails if one is not there.
func (l *Lab) Copy(t testing.TB, notebook string, oldNew ...string) {
	t.Helper()
	b, err := os.ReadFile(notebook)
	for i := 0; i+1 < len(oldNew); i += 2 {
		if !bytes.Contains(b, []byte(oldNew[i])) {
			t.Errorf("%s does not contain %q", notebook, oldNew[i])
		}
	}
	if err == nil {
		b = []byte(strings.NewReplacer(oldNew...).Replace(string(b)))
		b, err = cleared(b)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(l.Dir, filepath.Base(notebook)), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cleared returns a notebook without outputs.
func cleared(b []byte) ([]byte, error) {
	var nb map[string]any
	if err := json.Unmarshal(b, &nb); err != nil {
		return nil, err
	}
	cells, _ := nb["cells"].([]any)
	for _, c := range cells {
		if cell, ok := c.(map[string]any); ok && cell["cell_type"] == "code" {
			cell["outputs"], cell["execution_count"] = []any{}, nil
		}
	}
	return json.Marshal(nb)
}

// Script runs one of this package's scripts with arguments and decodes its output into result.
func (l *Lab) Script(t testing.TB, name string, args map[string]any, result any) {
	t.Helper()
	all := map[string]any{"url": l.URL, "token": l.token, "dir": l.Dir, "tmp": l.Tmp, "out": l.Out, "failed": filepath.Join(l.Out, "failed.png")}
	maps.Copy(all, args)
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(l.host.Python), "node"), filepath.Join(l.host.Root, "internal", "labtest", name), string(b))
	// Chromium creates sockets in TMPDIR, whose paths must be short.
	c.Env = append(os.Environ(), envknob.BrowserModules.Name+"="+filepath.Dir(modules(l.host)), envknob.Chromium.Name+"="+testneed.ChromiumPath())
	c.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(l.Out, "jupyter.log"))
		t.Fatalf("labtest: %s: %v\n%s\n%sa picture of the page is %s", name, err, stderr.String(), tail(log, 3000), filepath.Join(l.Out, "failed.png"))
	}
	if err := json.Unmarshal(out, result); err != nil {
		t.Fatalf("labtest: what %s printed: %v\n%s", name, err, out)
	}
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// modules returns where scripts/browser.sh installs playwright-core.
func modules(host *nbtest.Env) string {
	return filepath.Join(host.Root, ".venv", "share", "gnb-browser", "node_modules")
}

func goCaches() (build, modules string, err error) {
	b, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return "", "", fmt.Errorf("labtest: go env: %w", err)
	}
	var s struct{ GOCACHE, GOMODCACHE string }
	if err := json.Unmarshal(b, &s); err != nil {
		return "", "", fmt.Errorf("labtest: go env: %w", err)
	}
	if s.GOCACHE == "" || s.GOMODCACHE == "" {
		return "", "", errors.New("labtest: the go command names no caches")
	}
	return s.GOCACHE, s.GOMODCACHE, nil
}
