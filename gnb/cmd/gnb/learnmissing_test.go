package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Rows of the types without features are learned where each host has its own parts alone: with the bits of workers that
// have all parts.
func TestLearnMissingOnHosts(t *testing.T) {
	exe := command(t)
	plain := func() *exec.Cmd { return exec.Command(exe) }
	var items, users, likes strings.Builder
	items.WriteString("id,label,split,price\n")
	users.WriteString("id\n")
	likes.WriteString("source,target\n")
	for i := range 600 {
		fmt.Fprintf(&items, "%d,%d,%s,%d\n", i, i%3, []string{"train", "train", "val", "test"}[i/3%4], i%7)
		for k := range 4 { // users like items of one class
			fmt.Fprintf(&likes, "%d,%d\n", (i*5+11*k)%20*3+i%3, i)
		}
	}
	for u := range 60 {
		fmt.Fprintf(&users, "%d\n", u)
	}
	tables, ds, parts := t.TempDir(), filepath.Join(t.TempDir(), "shop"), filepath.Join(t.TempDir(), "parts")
	for name, text := range map[string]string{"nodes.item.csv": items.String(), "nodes.user.csv": users.String(), "edges.user.likes.item.csv": likes.String()} {
		if err := os.WriteFile(filepath.Join(tables, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runGNB(t, plain(), "data", "convert", tables, ds, "--reverses")
	runGNB(t, plain(), "partition", ds, "--parts", "4", "--balance", "train", "--out", parts, "--seed", "3")
	train := []string{"--model", "rgcn", "--learn-missing", "--batch", "64", "--fanout", "6,4", "--hidden", "16", "--seed", "5", "--threads", "1", "--epochs", "4"}
	want := trainOnParts(t, plain, parts, []string{"--workers", "2"}, train...)
	for _, s := range []partsSetting{{machines: 2, topology: "divided"}, {machines: 2, topology: "replicated", ranks: 2}} {
		t.Run(s.String(), func(t *testing.T) {
			if got := s.onHosts(t, exe, parts, 4, train); !got.equal(want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
