package kernel

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// ModulePath is the module that cells import.
const ModulePath = "github.com/graphnb/graphnb"

// ToolsDir returns the directory below Jupyter's data directory in which install keeps a kernel's
// programs.
func ToolsDir(jupyter string) string { return filepath.Join(jupyter, "graphnb", "bin") }

// EditorDir returns the directory of programs that only interactive use needs. It is on the PATH of
// kernels with a browser, not of headless ones.
func EditorDir(bin string) string { return filepath.Join(bin, "editor") }

// ReplaceFile writes a file with the given mode, even if the file is a running program.
func ReplaceFile(file string, data []byte, mode os.FileMode) error {
	err := atomicfile.WriteFile(file, data, mode)
	if err == nil {
		err = os.Chmod(file, mode) // an existing file kept its old mode
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
