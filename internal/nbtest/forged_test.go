package nbtest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Messages of strangers to any socket, and broken messages with the right signature, end neither the
// kernel nor the cell that runs.
func TestForgedMessages(t *testing.T) {
	env := Setup(t)
	out, err := env.script(t, nil, "forged.py", "--kernel", KernelName, "--dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Attacks                         []string
		Dead                            *string
		Status, Stdout, Second, Aborted string
		Error, Stderr                   string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Dead != nil {
		t.Fatalf("after %q the kernel was dead or deaf:\n%s", *got.Dead, got.Stderr)
	}
	if len(got.Attacks) < 40 {
		t.Errorf("only %d attacks: %q", len(got.Attacks), got.Attacks)
	}
	if got.Status != "ok" || got.Stdout != "trained to the end\n" || got.Second != "42\n" {
		t.Errorf("the cell ended as %q (%s) with %q, the next one wrote %q:\n%s", got.Status, got.Error, got.Stdout, got.Second, got.Stderr)
	}
	if got.Aborted != "error" {
		t.Errorf("a request without its fields was answered by %q", got.Aborted)
	}
	if strings.Contains(got.Stderr, "goroutine ") || strings.Contains(got.Stderr, ".go:") || strings.Contains(got.Stderr, "Info message") {
		t.Errorf("the kernel's terminal shows GoNB's own log:\n%s", got.Stderr)
	}
	t.Logf("%d attacks; the kernel's terminal:\n%s", len(got.Attacks), got.Stderr)
}
