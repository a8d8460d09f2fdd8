package mapped

import "golang.org/x/sys/unix"

// populateStep is the part of a file that one call of the kernel maps, so that ending the program does not wait for more.
const populateStep = 16 << 20

// populate maps the pages of data, which is whole pages from the first on; it returns false if the kernel cannot (before Linux 5.14).
func populate(data []byte, going func() bool) bool {
	for len(data) > 0 {
		n := min(len(data), populateStep)
		if !going() || unix.Madvise(data[:n], unix.MADV_POPULATE_READ) != nil {
			return false
		}
		data = data[n:]
	}
	return true
}
