package testneed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outcome is a test that records how it ended, and why.
type outcome struct {
	testing.TB
	end, why string
}

func (o *outcome) Helper()           {}
func (o *outcome) Skip(args ...any)  { o.stop("skip", args) }
func (o *outcome) Fatal(args ...any) { o.stop("fail", args) }
func (o *outcome) stop(end string, args []any) {
	o.end, o.why = end, fmt.Sprint(args...)
	panic(o)
}

// ended returns how f ends a test, and the reason; "" if f does not end it.
func ended(f func(testing.TB)) (end, why string) {
	o := &outcome{}
	defer func() {
		if r := recover(); r != nil && r != any(o) {
			panic(r)
		}
		end, why = o.end, o.why
	}()
	f(o)
	return "", ""
}

func TestRealData(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_DATA", dir)
	if err := os.MkdirAll(filepath.Join(dir, "planetoid"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := RealData(t, "planetoid"); got != filepath.Join(dir, "planetoid") {
		t.Errorf("the file is found at %s", got)
	}
	if !Data.Here() {
		t.Error("the folder exists, but Data counts as missing")
	}
	none := func(t testing.TB) { RealData(t, "planetoid/none") }
	t.Setenv("GNB_STRICT", "0")
	t.Setenv("CI", "")
	if end, why := ended(none); end != "skip" || !strings.HasPrefix(why, "needs data: ") || !strings.Contains(why, "planetoid/none") {
		t.Errorf("without the file the test ends by %q: %q", end, why)
	}
	if !testing.Short() {
		t.Setenv("GNB_STRICT", "1")
		if end, _ := ended(none); end != "fail" {
			t.Errorf("with GNB_STRICT=1 the folder exists, and a test without its file ends by %q", end)
		}
	}
	t.Setenv("GNB_DATA", filepath.Join(dir, "none"))
	if Data.Here() {
		t.Error("Data counts as present without a folder")
	}
	if end, why := ended(none); end != "skip" {
		t.Errorf("with GNB_STRICT=1 and without the folder the test ends by %q: %q", end, why)
	}
	// Without the variable, the folder is beside the checkout and not beside the package.
	t.Setenv("GNB_DATA", "")
	if got := DataDir(); !filepath.IsAbs(got) || filepath.Dir(filepath.Dir(got)) != filepath.Dir(root()) {
		t.Errorf("the folder is %s, want shared/data beside %s", got, root())
	}
}

// Without a package index, the network counts as missing.
func TestOffline(t *testing.T) {
	NotShort(t, "it asks an index that does not answer")
	if os.Getenv("GNB_TEST_OFFLINE") != "" {
		if Network.Here() {
			t.Error("pip has no index, but the network is reported as available")
		}
		return
	}
	c := exec.Command(os.Args[0], "-test.run", "^TestOffline$")
	c.Env = append(os.Environ(), "GNB_TEST_OFFLINE=1", "PIP_INDEX_URL=http://127.0.0.1:1/simple", "PIP_NO_INDEX=", "PIP_FIND_LINKS=", "PIP_EXTRA_INDEX_URL=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
