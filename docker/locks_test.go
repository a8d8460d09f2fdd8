package docker

import (
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

// pythons are the versions that the locks must hold for: the first of each, and what Ubuntu 22.04 and Debian
// 12 have. README says from which to which.
var pythons = []string{"3.10.0", "3.10.12", "3.11.2", "3.12.0", "3.13.0", "3.14.0"}

// listed prints what a lock asks of the Python that runs it.
const listed = `
import sys
from pip._vendor.packaging.requirements import Requirement
for line in open(sys.argv[1]):
    line = line.partition("#")[0].strip()
    if line:
        r = Requirement(line)
        if not r.marker or r.marker.evaluate():
            print(r.name + str(r.specifier))
`

// locks runs scripts/locks.sh, in the module's root.
func locks(args ...string) (string, error) {
	c := exec.Command("bash", append([]string{"scripts/locks.sh"}, args...)...)
	c.Dir = root
	out, err := c.CombinedOutput()
	return string(out), err
}

// Everything that goes into one environment of a checkout can be installed together with every Python that
// README names, as wheels; and the locks are what their sources give.
func TestLocksResolve(t *testing.T) {
	if testing.Short() {
		t.Skip("it asks the package index")
	}
	t.Parallel()
	testneed.PyPI(t)
	versions := []string{pythons[0], pythons[len(pythons)-1]}
	if testneed.Soak.Here() {
		versions = pythons
	}
	for _, python := range versions {
		if out, err := locks("--resolve", python, "docker/requirements.txt", "scripts/requirements.txt", "internal/labtest/requirements.txt"); err != nil {
			t.Errorf("Python %s: %v\n%s", python, err, out)
		}
	}
	if out, err := locks("--check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// It would say something: this was the lock that Debian 12's Python could not take.
	bad := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(bad, []byte("soupsieve==4.1.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := locks("--resolve", "3.11.2", bad); err == nil || !strings.Contains(out, "soupsieve") {
		t.Errorf("a lock that needs a newer Python passed (%v):\n%s", err, out)
	}
}

// README, the scripts and the doctor name the same Pythons.
func TestPythonsAreNamed(t *testing.T) {
	minor := func(version string) string { return strings.Join(strings.Split(version, ".")[:2], ".") }
	first, last := minor(pythons[0]), minor(pythons[len(pythons)-1])
	for file, want := range map[string]string{
		"README.md":                            fmt.Sprintf("Python %s to %s", first, last),
		"CONTRIBUTING.md":                      fmt.Sprintf("Python %s", first),
		"scripts/need.sh":                      fmt.Sprintf("Python %s", first),
		"scripts/locks.sh":                     fmt.Sprintf("--python-version %s ", first),
		"gnb/cmd/gnb/internal/setup/doctor.go": fmt.Sprintf("minPython = %q", first),
		"docker/requirements.txt":              fmt.Sprintf("for Python %s and newer", first),
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}

// pin is a line of a lock: a package, its version, and where it holds.
var pin = regexp.MustCompile(`^([a-z\d][a-z\d-]*)==([\w.]+)( ; .+)?$`)

// Two locks go into one environment of a checkout ("make lab"), so where both name a package they name
// the same versions: neither undoes the other. And nothing in them is without a version.
func TestListsAgree(t *testing.T) {
	pins := func(file string) map[string][]string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]string{}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			m := pin.FindStringSubmatch(line)
			if m == nil {
				t.Errorf("%s: %q is not NAME==VERSION, with or without a marker", file, line)
				continue
			}
			all[m[1]] = append(all[m[1]], m[2])
		}
		return all
	}
	tests, both := pins(filepath.Join(root, "scripts", "requirements.txt")), 0
	for name, versions := range pins("requirements.txt") {
		if v, ok := tests[name]; ok {
			both++
			if !slices.Equal(v, versions) {
				t.Errorf("%s is %s in docker/requirements.txt and %s in scripts/requirements.txt", name, versions, v)
			}
		}
	}
	if both < 20 {
		t.Errorf("%d packages in both lists, want Jupyter's and what they bring", both)
	}
}

// No file that people read or run names a package registry's host: where packages come from is the machine's
// own setting.
func TestNoRegistryHosts(t *testing.T) {
	testneed.NotShort(t, "it reads every file of the repository")
	hosts := regexp.MustCompile(`registry\.npmjs|pypi\.` + `org|proxy\.golang|files\.pythonhosted`)
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("this is not a checkout: %v", err)
	}
	files := 0
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if base := filepath.Base(name); base == "go.sum" || base == "locks_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // removed, and not committed yet
		}
		files++
		if m := hosts.FindString(string(text)); m != "" {
			t.Errorf("%s names %s", name, m)
		}
	}
	if files < 100 {
		t.Errorf("%d files were looked at", files)
	}
}
