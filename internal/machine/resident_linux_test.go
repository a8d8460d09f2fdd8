package machine

import (
	"os"
	"syscall"
	"testing"
)

// A process's resident memory grows by what it writes to, not by what it only allocates.
func TestResident(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skipf("this system does not say how much memory a process has: %v", err)
	}
	before, _, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 256 << 20
	// The mapping comes from the system: Go clears heap memory that it uses again, and so writes to it.
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	asked, _, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	written, _, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if asked-before > size/2 || written-asked < size/2 || written-before > 2*size {
		t.Errorf("%d bytes, %d after allocating %d, %d after writing to them", before, asked, size, written)
	}
	if _, _, err := Resident(1 << 30); err == nil {
		t.Error("a process that does not exist gave no error")
	}
}
