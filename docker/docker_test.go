package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

var (
	root        = ".."
	dockerfiles = []string{"Dockerfile.cpu", "Dockerfile.cuda"}
)

// hadolint, at the version that scripts/requirements.txt pins, has nothing to say;
// it looks at the shell in RUN lines too.
func TestLint(t *testing.T) {
	hadolint := filepath.Join(root, ".venv", "bin", "hadolint")
	if _, err := os.Stat(hadolint); err != nil {
		testneed.Skip(t, testneed.Python, "there is no .venv/bin/hadolint")
	}
	lint := func(file string) (string, error) {
		out, err := exec.Command(hadolint, "--no-color", file).CombinedOutput()
		return string(out), err
	}
	for _, file := range append([]string{"../.devcontainer/Dockerfile", "Dockerfile.serve-model"}, dockerfiles...) {
		if out, err := lint(file); err != nil || out != "" {
			t.Errorf("%v\n%s", err, out)
		}
	}
	// It would say something.
	bad := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(bad, []byte("FROM debian:latest\nRUN cd /tmp && echo $x\nUSER root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"DL3007", "DL3002", "SC2086"} {
		if out, err := lint(bad); err == nil || !strings.Contains(out, rule) {
			t.Errorf("a bad file passed without %s (%v):\n%s", rule, err, out)
		}
	}
}

// instruction is a line of a Dockerfile, continuations joined.
type instruction struct{ word, rest string }

func instructions(t *testing.T, file string) []instruction {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []instruction
	joined := strings.ReplaceAll(regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(text), ""), "\\\n", " ")
	for line := range strings.Lines(joined) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, instruction{strings.ToUpper(word), strings.Join(strings.Fields(rest), " ")})
		}
	}
	return all
}

// What a linter does not ask for: versions to the patch, the Go of this checkout,
// no root at the end, a health check, and files that are there.
func TestDockerfiles(t *testing.T) {
	version, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		t.Fatal(err)
	}
	minimum, err := exec.Command("go", "-C", root, "list", "-m", "-f", "{{.GoVersion}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range dockerfiles {
		user, health, last, runs := "", "", "", ""
		for _, in := range instructions(t, file) {
			switch in.word {
			case "FROM":
				image, _, _ := strings.Cut(in.rest, " ")
				if !regexp.MustCompile(`^[a-z/]+:\d+\.\d+\.\d+(-[a-z0-9-.]+)?$`).MatchString(image) {
					t.Errorf("%s: %s is not pinned to the patch", file, image)
				}
				if v, ok := strings.CutPrefix(image, "golang:"); ok {
					v, _, _ = strings.Cut(v, "-")
					if older("go"+v, "go"+strings.TrimSpace(string(minimum))) || older("go"+v, strings.TrimSpace(string(version))) {
						t.Errorf("%s: Go %s; the module wants %s and the tests run on %s", file, v, minimum, version)
					}
				}
				user = "root"
			case "USER":
				user = in.rest
			case "HEALTHCHECK":
				health = in.rest
			case "COPY":
				for _, source := range strings.Fields(in.rest) {
					if strings.HasPrefix(source, "--from") {
						break
					}
					if !strings.HasPrefix(source, "--") {
						if _, err := os.Stat(filepath.Join(root, source)); err != nil {
							t.Errorf("%s: COPY: %v", file, err)
						}
						break
					}
				}
			case "RUN":
				runs += in.rest + "\n"
				for _, path := range regexp.MustCompile(`\b(?:docker|scripts)/[\w.]+`).FindAllString(in.rest, -1) {
					if _, err := os.Stat(filepath.Join(root, path)); err != nil {
						t.Errorf("%s: RUN: %v", file, err)
					}
				}
			}
			last = in.word
		}
		if user == "root" || user == "0" || last != "CMD" {
			t.Errorf("%s ends as user %q with %s; want a user without rights, and a command", file, user, last)
		}
		if cuda := strings.HasSuffix(file, ".cuda"); strings.Contains(runs, "docker/install.sh kernel /opt/venv --cuda") != cuda || strings.Contains(runs, " gcc ") != cuda {
			t.Errorf("%s: cells for GPUs take the kernel of --cuda and a C compiler; it runs\n%s", file, runs)
		}
		if !strings.Contains(health, "docker/healthy.py") {
			t.Errorf("%s: the health check is %q", file, health)
		}
	}
}

// The image of a model server has one file, which it runs without rights, and asks itself whether it answers.
func TestServeModelImage(t *testing.T) {
	got := map[string]string{}
	for _, in := range instructions(t, "Dockerfile.serve-model") {
		if got[in.word] != "" {
			t.Errorf("%s is there twice", in.word)
		}
		got[in.word] = in.rest
	}
	for word, want := range map[string]string{"FROM": "scratch", "COPY": "app /app", "USER": "65534:65534", "ENTRYPOINT": `["/app"]`, "EXPOSE": "7800"} {
		if got[word] != want {
			t.Errorf("%s is %q, want %q", word, got[word], want)
		}
	}
	_, command, _ := strings.Cut(got["HEALTHCHECK"], "CMD ")
	for what, text := range map[string]string{"the health check": command, "the command": got["CMD"]} {
		var words []string
		if err := json.Unmarshal([]byte(text), &words); err != nil || len(words) == 0 {
			t.Errorf("%s is %q, not a list of words; there is no shell: %v", what, text, err)
		}
	}
	if got["RUN"] != "" {
		t.Errorf("it runs %q, and has nothing to run it with", got["RUN"])
	}
}

// older compares versions such as go1.26.8, number by number.
func older(a, b string) bool {
	number := regexp.MustCompile(`\d+`)
	x, y := number.FindAllString(a, -1), number.FindAllString(b, -1)
	for i := range min(len(x), len(y)) {
		if len(x[i]) != len(y[i]) {
			return len(x[i]) < len(y[i])
		}
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

// project is what the tests look at of a compose file.
type project struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		Command     []string
		Profiles    []string
		Healthcheck *struct{ Disable bool }
		Ports       []struct {
			HostIP string `json:"host_ip"`
			Target int
		}
		Volumes []struct{ Source, Target string }
	}
	Volumes map[string]any
}

func compose(t *testing.T, file string) (project, error) {
	t.Helper()
	out, err := exec.Command(program(t, "tools/compose", ".", ""), file).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return project{}, err
	}
	var p project
	return p, json.Unmarshal(out, &p)
}

// The compose file is one by the Compose Specification's own loader and schema, and
// what it names is there: Dockerfiles, commands, flags, volumes.
func TestCompose(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the reader of compose files")
	}
	abs, err := filepath.Abs("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compose(t, abs)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Services) != 6 {
		t.Errorf("%d services, want lab, lab-gpu, train, graph-a, graph-b and train-served", len(p.Services))
	}
	for name, s := range p.Services {
		if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil || s.Image == "" {
			t.Errorf("%s: image %q: %v", name, s.Image, err)
		}
		for _, v := range s.Volumes {
			if _, ok := p.Volumes[v.Source]; !ok || v.Target != "/home/graphnb/work" {
				t.Errorf("%s: the volume %s is not declared, or not where the image works", name, v.Source)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" || port.Target != 8888 {
				t.Errorf("%s: port %d is open on %q; a notebook server runs whatever it is told, so only on 127.0.0.1", name, port.Target, port.HostIP)
			}
		}
		if len(s.Command) > 0 {
			commandExists(t, s.Command)
		}
		if (s.Healthcheck != nil && s.Healthcheck.Disable) != (len(s.Ports) == 0) {
			t.Errorf("%s: a service with a server has a health check, one without has none", name)
		}
	}
	bad := filepath.Join(t.TempDir(), "compose.yaml")
	if err := os.WriteFile(bad, []byte("services:\n  lab:\n    image: x\n    prots: [\"1:1\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := compose(t, bad); err == nil || !strings.Contains(err.Error(), "prots") {
		t.Errorf("a misspelt key passed: %v", err)
	}
}

// commandExists sees that gnb has the command and its flags.
func commandExists(t *testing.T, command []string) {
	t.Helper()
	if command[0] != "gnb" || len(command) < 2 {
		t.Errorf("the command %q is not one of gnb", command)
		return
	}
	help, err := exec.Command(gnb(t), command[1], "--help").CombinedOutput()
	if err != nil {
		t.Errorf("gnb %s --help: %v\n%s", command[1], err, help)
	}
	for _, word := range command[2:] {
		if strings.HasPrefix(word, "--") && !strings.Contains(string(help), word) {
			t.Errorf("gnb %s has no flag %s:\n%s", command[1], word, help)
		}
	}
}

// The install script makes, in an empty directory, what the images promise: the
// pinned packages and no others, a kernel that runs a notebook, gnb on the path,
// and a JupyterLab that the health check finds. A second run does nothing.
func TestInstallScript(t *testing.T) {
	if !testneed.Soak.Here() {
		testneed.Skip(t, testneed.Soak, "it installs JupyterLab, and compiles the kernel's programs again; TestInstalled checks the checkout's own")
	}
	t.Parallel()
	testneed.PyPI(t)
	venv := filepath.Join(t.TempDir(), "venv")
	install := func() string {
		c := exec.Command("bash", "install.sh", "lab", venv, "--raw-error", "--headless")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := install(); !strings.Contains(out, "making "+venv) || !strings.Contains(out, `kernel "Go (GraphNB)"`) {
		t.Errorf("the first run wrote\n%s", out)
	}
	if out := install(); strings.Contains(out, "making") || strings.Contains(out, "building") {
		t.Errorf("the second run installed again:\n%s", out)
	}
	want, got := installed(t, venv)
	if !slices.Equal(got, want) {
		t.Errorf("installed\n%s\nrequirements.txt lists for this Python\n%s", got, want)
	}
	bin := func(name string) string { return filepath.Join(venv, "bin", name) }
	if out, err := exec.Command(bin("gnb"), "doctor", "--help").CombinedOutput(); err != nil {
		t.Errorf("gnb: %v\n%s", err, out)
	}
	runNotebook(t, bin("python3"))
	serve(t, bin("jupyter"))
}

// The checkout's environment, which the install script made, has the pinned packages beside those of the tests; a second
// run does nothing, and the health check finds its JupyterLab.
func TestInstalled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts JupyterLab")
	}
	t.Parallel()
	const venv = "../.venv"
	jupyter := filepath.Join(venv, "bin", "jupyter")
	if _, err := os.Stat(jupyter); err != nil {
		testneed.Skip(t, testneed.Python, "JupyterLab is not in .venv: %v", err)
	}
	want, got := installed(t, venv)
	for _, p := range want {
		if !slices.Contains(got, p) {
			t.Errorf("%s is not installed", p)
		}
	}
	c := exec.Command("bash", "docker/install.sh", "python", ".venv", "docker/requirements.txt")
	c.Dir = ".."
	out, err := c.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("another run: %v\n%s", err, out)
	}
	serve(t, jupyter)
}

// installed returns the packages that requirements.txt lists for an environment's Python, and those that it has.
func installed(t *testing.T, venv string) (want, got []string) {
	t.Helper()
	python := filepath.Join(venv, "bin", "python3")
	list, err := exec.Command(python, "-c", listed, "requirements.txt").Output()
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := exec.Command(python, "-m", "pip", "freeze").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, got = packages(string(list)), packages(string(frozen))
	if len(want) < 80 {
		t.Errorf("requirements.txt lists only %d packages for this Python", len(want))
	}
	return want, got
}

// packages returns the lines of pip, by names as PyPI compares them.
func packages(text string) []string {
	all := strings.Fields(strings.ReplaceAll(strings.ToLower(text), "_", "-"))
	slices.Sort(all)
	return all
}

func runNotebook(t *testing.T, python string) {
	t.Helper()
	dir := t.TempDir()
	summary := filepath.Join(dir, "summary.json")
	c := exec.Command(python, "../internal/nbtest/run.py", "--kernel", "graphnb", "--dir", dir, "--timeout", "120",
		"--out", filepath.Join(dir, "out.ipynb"), "--summary", summary, "testdata/first.ipynb")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(summary)
	if err != nil || !strings.Contains(string(text), "34 nodes, done") {
		t.Errorf("the notebook wrote (%v)\n%s", err, text)
	}
}

// serve starts JupyterLab and asks the health check about it, before, while and
// after it runs.
func serve(t *testing.T, jupyter string) {
	t.Helper()
	port, err := nbtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	url := "http://127.0.0.1:" + port
	healthy := func() (string, error) {
		out, err := exec.Command("python3", "healthy.py", url).CombinedOutput()
		return string(out), err
	}
	if out, err := healthy(); err == nil || !strings.Contains(out, "does not answer") {
		t.Errorf("without a server it is healthy: %v, %s", err, out)
	}
	dir := t.TempDir()
	c := exec.Command(jupyter, "lab", "--no-browser", "--ip=127.0.0.1", "--port="+port, "--notebook-dir="+dir, "--allow-root")
	c.Env = append(os.Environ(), "HOME="+dir, "JUPYTER_RUNTIME_DIR="+dir)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	stop := func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			t.Error("JupyterLab did not end within 20 s")
		}
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, err := healthy()
		if err == nil && strings.HasPrefix(out, "Jupyter Server ") {
			break
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			stop()
			t.Fatalf("it is not healthy after a minute: %s%s", out, text)
		}
	}
	stop()
	if _, err := healthy(); err == nil {
		t.Error("after the server's end it is still healthy")
	}
	var exit *exec.ExitError
	if err := exec.Command("python3", "healthy.py", "nonsense").Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("an address that is none: %v", err)
	}
}
