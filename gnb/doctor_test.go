package gnb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/nbtest"
)

// In a cell the doctor looks at the kernel that the cell runs in, and finds it well.
func TestDoctorInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	const cell = `import "github.com/graphnb/graphnb/gnb"

%%
d := gnb.Must(gnb.Doctor(context.Background()))
fmt.Println("looked at", len(d))
`
	first, _ := env.Interrupt(t, t.TempDir(), cell, 1<<30)
	if first.Status != "ok" || !strings.Contains(first.Stdout, "looked at 1") {
		t.Fatalf("the cell ended as %q:\n%s\n%s", first.Status, first.Stdout, first.Stderr)
	}
	for _, want := range []string{"ok    go ", "ok    jupyter ", "ok    kernel         \"Go (GraphNB, tests)\"", "ok    memory ", "ok    shared memory ", "ok    disk "} {
		if !strings.Contains(first.Stdout, want) {
			t.Errorf("the cell did not write %q:\n%s", want, first.Stdout)
		}
	}
}

// What the command says becomes findings; whatever else it does is an error with a way out.
func TestDoctor(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gnb")
	t.Setenv("GNB_HELPER", program)
	for _, tc := range []struct{ name, body, err string }{
		{"findings", `echo '{"event":"result","checks":[{"name":"disk","ok":false,"detail":"full","fix":"free some"}]}'; exit 1`, ""},
		{"findings, and a process that it left", `echo '{"event":"result","checks":[{"name":"disk","ok":false,"detail":"full","fix":"free some"}]}'; while [ -e "$0" ]; do sleep 0.1; done & exit 1`, ""},
		{"findings, and a process that it left", `echo '{"event":"result","checks":[{"name":"disk","ok":false,"detail":"full","fix":"free some"}]}'; while [ -e "$0" ]; do sleep 0.1; done & exit 0`, ""},
		{"another program", `echo hello`, "did not say what it found"},
		{"an old one", `echo "there is no command doctor" >&2; exit 2`, "there is no command doctor"},
		{"none", "", "cannot be run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_ = os.Remove(program)
			if tc.body != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+tc.body+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			d, err := gnb.Doctor(context.Background())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q in it", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d.OK() || len(d) != 1 || d[0].Fix != "free some" || d.String() != "FAIL  disk           full\n                     to fix: free some\n" {
				t.Errorf("%q of %+v", d, []gnb.Finding(d))
			}
		})
	}
}
