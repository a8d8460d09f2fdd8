package kernel

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// ModulePath is what cells import from.
const ModulePath = "github.com/graphnb/graphnb"

// ToolsDir is where install keeps a kernel's programs, below Jupyter's data directory.
func ToolsDir(jupyter string) string { return filepath.Join(jupyter, "graphnb", "bin") }

// EditorDir is where those are that only somebody who types needs: on the PATH of a kernel with a
// browser, and not on that of one without.
func EditorDir(bin string) string { return filepath.Join(bin, "editor") }

// ReplaceFile writes a file, which may be a program that is running, with this mode.
func ReplaceFile(file string, data []byte, mode os.FileMode) error {
	err := atomicfile.WriteFile(file, data, mode)
	if err == nil {
		err = os.Chmod(file, mode) // one that was there has kept its own
	}
	return err
}

func ExeName(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
