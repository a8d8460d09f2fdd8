package repotest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// files returns the checkout's files, without those that git ignores.
func files(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("this is not a checkout: %v", err)
	}
	var all []string
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			all = append(all, name)
		}
	}
	return all
}

// GitHub's files are valid by the schemas of GitHub and schemastore.org, which the Python package
// check-jsonschema contains; the test needs no network.
func TestGitHubSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts Python")
	}
	if _, err := os.Stat(filepath.Join(root, ".venv", "bin", "check-jsonschema")); err != nil {
		testneed.Skip(t, testneed.Python, "there is no .venv/bin/check-jsonschema")
	}
	forms := slices.DeleteFunc(glob(t, ".github/ISSUE_TEMPLATE/*.yml"), func(f string) bool { return filepath.Base(f) == "config.yml" })
	bad := filepath.Join(t.TempDir(), "ci.yml")
	if err := os.WriteFile(bad, []byte("on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    stepps: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	checks := []struct {
		schema string
		files  []string
	}{
		{"github-workflows", glob(t, ".github/workflows/*.yml")},
		{"dependabot", glob(t, ".github/dependabot.yml")},
		{"github-issue-forms", forms},
		{"github-issue-config", glob(t, ".github/ISSUE_TEMPLATE/config.yml")},
		{"github-workflows", []string{bad}},
	}
	var all [][]string // the arguments of check-jsonschema for each check
	for _, c := range checks {
		if len(c.files) == 0 {
			t.Fatalf("no files were found for %s", c.schema)
		}
		all = append(all, append([]string{"--builtin-schema", "vendor." + c.schema}, c.files...))
	}
	args, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	// One process for all, because starting it takes two seconds.
	const program = `import json, sys
from check_jsonschema import main
from click.testing import CliRunner
print(json.dumps([(r.exit_code, r.output) for r in (CliRunner().invoke(main, args) for args in json.loads(sys.argv[1]))]))`
	c := exec.Command(filepath.Join(root, ".venv", "bin", "python3"), "-c", program, string(args))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	var got [][2]any // exit status and output
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || len(got) != len(checks) {
		t.Fatalf("check-jsonschema: %v\n%s%s", err, out, stderr.String())
	}
	for i, g := range got {
		failed, text := g[0] != 0.0, fmt.Sprint(g[1])
		if i == len(got)-1 {
			if !failed || !strings.Contains(text, "stepps") {
				t.Errorf("a misspelt key passed:\n%s", text)
			}
		} else if failed {
			t.Errorf("%s: %s", checks[i].schema, text)
		}
	}
}

// The bug form asks first for the information that maintainers need.
func TestBugFormAsksForDoctor(t *testing.T) {
	if text := read(t, ".github", "ISSUE_TEMPLATE", "bug.yml"); !strings.Contains(text, "`gnb doctor --json`") {
		t.Error("bug.yml does not ask for the output of `gnb doctor --json`")
	}
}

var (
	runLine = regexp.MustCompile(`(?m)^\s+- run: (.+)$`)
	script  = regexp.MustCompile(`bash ([\w./-]+)`)
	target  = regexp.MustCompile(`make ([a-z-]+)`)
	action  = regexp.MustCompile(`(?m)uses: (\S+)(.*)$`)
	pinned  = regexp.MustCompile(`^[\w.-]+/[\w.-]+(/[\w.-]+)*@[0-9a-f]{40}$`)
)

// The workflows run scripts and targets that exist, and name actions by their commits.
func TestWorkflowsRunTheScripts(t *testing.T) {
	makefile, image := read(t, "Makefile"), read(t, "docker", "Dockerfile.cpu")
	for _, file := range glob(t, ".github/workflows/*.yml") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		runs := runLine.FindAllStringSubmatch(text, -1)
		if len(runs) < 3 {
			t.Errorf("%s: %d lines \"run:\"", file, len(runs))
		}
		for _, run := range runs {
			for _, m := range script.FindAllStringSubmatch(run[1], -1) {
				if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
					t.Errorf("%s runs %s: %v", file, m[1], err)
				}
			}
			for _, m := range target.FindAllStringSubmatch(run[1], -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("%s runs \"make %s\", but Makefile has no such target", file, m[1])
				}
			}
		}
		for _, m := range regexp.MustCompile(`go-version: "(.*)"`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(image, "golang:"+m[1]+"-") {
				t.Errorf("%s has Go %s, and docker/Dockerfile.cpu another", file, m[1])
			}
		}
		for _, m := range action.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(m[1]) || !strings.HasPrefix(strings.TrimSpace(m[2]), "# v") {
				t.Errorf("%s: %s%s: want a commit of 40 digits, and its version after \"# v\"", file, m[1], m[2])
			}
		}
	}
}

// Dependabot checks every directory with dependencies and no directory that does not exist. A new
// directory with dependencies is added to dependabot.yml, or to left with a reason.
func TestDependabotCoversAll(t *testing.T) {
	left := map[string]string{ // directories that Dependabot does not check, with reasons
		"bench/requirements.txt":          "old releases on purpose: the newest that run together",
		"bench/requirements-newest.txt":   "a newer release comes with a measurement; make outdated names it",
		"bench/requirements-temporal.txt": "a newer release comes with a measurement",
		"scripts/requirements-cuda.txt":   "is in /scripts, and its compiler is ignored there",
	}
	text := read(t, ".github", "dependabot.yml")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s+(?:- |directory: )(/\S*)`).FindAllStringSubmatch(text, -1) {
		dir := filepath.Join(root, filepath.FromSlash(m[1]))
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("dependabot.yml names %s, which is not a directory", m[1])
		}
		named[strings.Trim(m[1], "/")] = true
	}
	for _, name := range files(t) {
		if strings.Contains(name, "testdata/") {
			continue // the programs that wrote a test's fixtures belong to the fixtures
		}
		switch base := filepath.Base(name); {
		case base == "go.mod", base == "package.json", strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt"), strings.HasPrefix(base, "Dockerfile"):
			dir := filepath.ToSlash(filepath.Dir(name))
			if dir == "." {
				dir = ""
			}
			if left[dir] == "" && left[name] == "" && !named[dir] {
				t.Errorf("%s has dependencies, but dependabot.yml does not name /%s", name, dir)
			}
		}
	}
}

// The development container installs by docker/install.sh and has the Go version of the images.
func TestDevcontainer(t *testing.T) {
	text := read(t, ".devcontainer", "devcontainer.json")
	plain := regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAllString(text, "")
	var d struct {
		Name, RemoteUser                    string
		Build                               struct{ Dockerfile string }
		HostRequirements                    map[string]any
		PostCreateCommand, PostStartCommand string
		ForwardPorts                        []int
		PortsAttributes                     map[string]map[string]string
		Customizations                      map[string]any
	}
	decoder := json.NewDecoder(strings.NewReader(plain))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.PostCreateCommand != "bash docker/install.sh lab .venv" || !strings.Contains(d.PostStartCommand, "scripts/lab.sh --no-browser --port=8888") || !slices.Equal(d.ForwardPorts, []int{8888}) {
		t.Errorf("the container runs %q, then %q, on ports %v", d.PostCreateCommand, d.PostStartCommand, d.ForwardPorts)
	}
	golang := regexp.MustCompile(`golang:[\w.-]+`)
	own := read(t, ".devcontainer", d.Build.Dockerfile)
	if a, b := golang.FindString(own), golang.FindString(read(t, "docker", "Dockerfile.cpu")); a == "" || a != b {
		t.Errorf("the container's base image is %q, that of docker/Dockerfile.cpu is %q", a, b)
	}
	if !strings.Contains(own, "--create-home --uid 1000 --shell /bin/bash "+d.RemoteUser+"\nUSER 1000\n") {
		t.Errorf("the Dockerfile does not create the user %q", d.RemoteUser)
	}
}

// A release covers the systems and processors that docs/status.md names, and builds without cgo.
func TestReleaseTargets(t *testing.T) {
	text := read(t, ".goreleaser.yaml")
	for _, want := range []string{"CGO_ENABLED=0", "main: ./gnb/cmd/gnb", "goos: [linux, darwin]", "goarch: [amd64, arm64]"} {
		if !strings.Contains(text, want) {
			t.Errorf(".goreleaser.yaml has no %q", want)
		}
	}
}
