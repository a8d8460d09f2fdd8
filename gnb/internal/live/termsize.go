package live

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// termWidth is the number of columns of the terminal that w writes to, 0 where w is no terminal. A
// terminal that does not know its width has 80.
func termWidth(w io.Writer) int {
	cols, _ := termSize(w)
	return cols
}

// termSize is termWidth and the number of rows, 0 where that is not known.
func termSize(w io.Writer) (cols, rows int) {
	f, ok := w.(*os.File)
	if !ok || runtime.GOOS == "windows" { // a console of Windows shows escape sequences as text, unless it is told
		return 0, 0
	}
	c, err := f.SyscallConn() // Fd would make the file blocking
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
