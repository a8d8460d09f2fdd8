package gnb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
)

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
