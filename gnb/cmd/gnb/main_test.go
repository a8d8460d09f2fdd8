package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
)

func TestCommandNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands() {
		if seen[c.Name] || c.Name == "" || c.Summary == "" || c.Run == nil {
			t.Errorf("command %q is incomplete or listed twice", c.Name)
		}
		seen[c.Name] = true
	}
}

// For every command, --help ends with status 0 and lists the command's flags.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		if c.Name == "kernel" {
			continue // Jupyter starts this command; its arguments belong to GoNB
		}
		var o, e bytes.Buffer
		if status := dispatch(t.Context(), []string{c.Name, "--help"}, &o, &e); status != cli.StatusOK {
			t.Errorf("gnb %s --help: status %d, %s", c.Name, status, e.String())
		}
		if !strings.Contains(o.String(), "usage: gnb "+c.Name) || !strings.Contains(o.String(), "--json") {
			t.Errorf("gnb %s --help prints %q", c.Name, o.String())
		}
	}
}

func TestDispatchUsage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		status int
	}{
		{"nothing", nil, cli.StatusUsage},
		{"unknown", []string{"trian"}, cli.StatusUsage},
		{"help", []string{"help"}, cli.StatusOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o, e bytes.Buffer
			if got := dispatch(t.Context(), tc.args, &o, &e); got != tc.status {
				t.Errorf("status %d, want %d", got, tc.status)
			}
			if (o.Len() > 0) == (e.Len() > 0) {
				t.Errorf("want output on one stream only: stdout %q, stderr %q", o.String(), e.String())
			}
		})
	}
}
