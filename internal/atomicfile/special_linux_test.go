package atomicfile_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

func TestMain(m *testing.M) {
	switch path := os.Getenv("ATOMICFILE_PATH"); {
	case path == "":
		os.Exit(m.Run())
	case os.Getenv("ATOMICFILE_LOOP") != "": // runs until the process is killed
		for i := 0; ; i++ {
			if err := atomicfile.WriteFile(path, []byte(strings.Repeat(string(rune('a'+i%26)), 1<<16)), 0o644); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			if i == 0 {
				fmt.Println("ready")
			}
		}
	default:
		fmt.Println("before")
		err := atomicfile.WriteFile(path, []byte("text\n"), 0o644)
		fmt.Println("after", err)
	}
}

// Writing to a pipe, directly or through a link, sends the bytes through the pipe and keeps the
// pipe.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fifo", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link} {
		got := make(chan string)
		go func() {
			b, err := os.ReadFile(fifo)
			got <- fmt.Sprint(string(b), err)
		}()
		if err := atomicfile.WriteFile(path, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		if g := <-got; g != "text<nil>" {
			t.Errorf("%s: the pipe received %s", path, g)
		}
		if info, err := os.Lstat(fifo); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Errorf("the file is now %v, %v", info.Mode(), err)
		}
	}
	if got := ls(t, dir); got != "fifo link" {
		t.Errorf("left: %s", got)
	}
}

// Writing to a device writes into it and keeps it. The devices are nodes like /dev/null and
// /dev/full in the test's directory, or a terminal if the test may not create device nodes.
func TestDevice(t *testing.T) {
	dir := t.TempDir()
	null, full := filepath.Join(dir, "null"), filepath.Join(dir, "full")
	made := errors.Join(unix.Mknod(null, unix.S_IFCHR|0o666, mkdev(1, 3)), unix.Mknod(full, unix.S_IFCHR|0o666, mkdev(1, 7)))
	if made == nil {
		f, err := os.OpenFile(null, os.O_WRONLY, 0)
		if made = err; err == nil { // opening fails if the file system allows no devices
			_ = f.Close()
		}
	}
	if made != nil {
		t.Logf("no devices can be made here (%v): the test uses a terminal instead", made)
		ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer ptmx.Close()
		null = terminalOf(t, ptmx)
		full = ""
	}
	if err := atomicfile.WriteFile(null, []byte("text"), 0o644); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(null); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("the file is now %v, %v", info.Mode(), err)
	}
	if full == "" {
		return
	}
	if err := atomicfile.WriteFile(full, []byte("text"), 0o644); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing to a full device gave %v", err)
	}
	if info, err := os.Lstat(full); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("the file is now %v, %v", info.Mode(), err)
	}
}

// The file that is this process's standard output is written in place, at its current position.
func TestStandardOutput(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const all = "before\ntext\nafter <nil>\n"
	run := func(out *os.File, path string) {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "ATOMICFILE_PATH="+path)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	for _, by := range []string{"/dev/stdout", "/dev/fd/1", filepath.Join(dir, "out")} {
		f, err := os.Create(filepath.Join(dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		run(f, by)
		_ = f.Close()
		want(t, f.Name(), all)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	run(w, "/dev/stdout")
	_ = w.Close()
	if b, err := io.ReadAll(r); err != nil || string(b) != all {
		t.Errorf("a pipe got %q, %v", b, err)
	}
}

// A writer killed at any moment leaves a complete file, and the next writer removes its temporary
// file.
func TestKilledWriter(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for range rounds {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "ATOMICFILE_PATH="+path, "ATOMICFILE_LOOP=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatal(line, err)
		}
		time.Sleep(rand.N(10 * time.Millisecond))
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		b, err := os.ReadFile(path)
		if err != nil || len(b) != 1<<16 || strings.Count(string(b), string(b[:1])) != len(b) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	if err := atomicfile.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ls(t, dir); got != "file" {
		t.Errorf("left: %s", got)
	}
}
func mkdev(major, minor uint32) int { return int(unix.Mkdev(major, minor)) }

// terminalOf returns the terminal at the other end of ptmx.
func terminalOf(t *testing.T, ptmx *os.File) string {
	t.Helper()
	if err := unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/dev/pts/%d", n)
}
