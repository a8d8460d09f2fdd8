//go:build linux && cgo && (amd64 || arm64)

package nvmlstat

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/machine"
)

// describe returns a process as /proc describes it: its name, and the run of which it is a worker,
// which workers carry in their environment and first argument (package multigpu). For a process of
// another user, or one outside this container, only the number is known.
func describe(proc string, pid int, memory machine.Value) machine.Process {
	p := machine.Process{PID: pid, Memory: memory}
	dir := filepath.Join(proc, strconv.Itoa(pid))
	if name, err := os.ReadFile(filepath.Join(dir, "comm")); err == nil {
		p.Name = string(bytes.TrimSpace(name))
	}
	args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return p
	}
	arg := bytes.Split(args, []byte{0})
	if len(arg) < 2 {
		return p
	}
	text, ok := bytes.CutPrefix(arg[1], []byte("-gnb.worker="))
	rank, err := strconv.Atoi(string(text))
	if !ok || err != nil {
		return p
	}
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return p
	}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if run, ok := bytes.CutPrefix(e, []byte(envknob.RunID.Name+"=")); ok {
			p.Run, p.Rank = string(run), rank
		}
	}
	return p
}
