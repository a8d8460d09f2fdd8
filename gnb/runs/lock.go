package runs

import "github.com/graphnb/graphnb/internal/filelock"

// inUse says whether some process is running the run in dir.
func inUse(dir string) bool {
	held, err := filelock.Held(dir)
	return err == nil && held
}
