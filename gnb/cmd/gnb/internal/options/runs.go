package options

import (
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/runs"
)

// OpenRun opens a run by its directory, or by its name among the runs.
func OpenRun(name string) (*runs.Run, error) { return runs.Open(RunDir(name)) }

// RunDir returns the directory for a name: the name itself, or a run's directory of this name.
func RunDir(name string) string {
	if !exists(name) && filepath.IsLocal(name) {
		if dir := filepath.Join(runs.Dir(), name); exists(dir) {
			return dir
		}
	}
	return name
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
