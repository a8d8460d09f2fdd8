package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/graphnb/graphnb/internal/envknob"
)

// ErrNoCommand is the error of FindCommand if there is no such program.
var ErrNoCommand = errors.New("there is no gnb beside this program or on PATH")

// FindCommand returns the path of GraphNB's command: the one in GNB_HELPER, else the gnb beside
// this program's own file, else the one on PATH. It never returns the running program if that is
// itself called gnb, because the program would start itself without end.
func FindCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		self = ""
	}
	return findCommand(self)
}

func findCommand(self string) (string, error) {
	if file := envknob.Helper.Get(); file != "" {
		if _, err := exec.LookPath(file); err != nil {
			return "", fmt.Errorf("%s is %s, which cannot be run: %w", envknob.Helper, file, err)
		}
		return file, nil
	}
	name := "gnb"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	own, err := os.Stat(self)
	other := func(file string) bool {
		info, e := os.Stat(file)
		return e == nil && (err != nil || !os.SameFile(info, own))
	}
	if self != "" {
		if file, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil && other(file) {
			return file, nil
		}
	}
	if file, err := exec.LookPath(name); err == nil && other(file) {
		return file, nil
	}
	return "", ErrNoCommand
}
