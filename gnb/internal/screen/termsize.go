package screen

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// TermWidth returns the number of columns of the terminal that w writes to, 0 if w is not a
// terminal, and 80 if the terminal does not know its width.
func TermWidth(w io.Writer) int {
	cols, _ := termSize(w)
	return cols
}

// termSize returns termWidth and the number of rows, 0 if unknown.
func termSize(w io.Writer) (cols, rows int) {
	f, ok := w.(*os.File)
	if !ok || runtime.GOOS == "windows" { // a Windows console shows escape sequences as text by default
		return 0, 0
	}
	c, err := f.SyscallConn() // unlike SyscallConn, Fd would make the file blocking
	if err != nil {
		return 0, 0
	}
	err = c.Control(func(fd uintptr) {
		width, height, err := term.GetSize(int(fd))
		if err != nil {
			return
		}
		if cols, rows = width, height; cols == 0 {
			cols = 80
		}
	})
	if err != nil {
		return 0, 0
	}
	return cols, rows
}
