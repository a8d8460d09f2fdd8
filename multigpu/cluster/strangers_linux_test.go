package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/testneed"
)

func init() {
	beStranger = func(asked string) {
		call, at, _ := strings.Cut(asked, " ")
		switch call {
		case "join": // as rank 1 of any job would
			w, err := dial(context.Background(), at, trust{}, hello{For: forJoin, Launcher: Torchrun, Rank: 1, World: 2})
			if err == nil {
				_, b, e := w.receive(maxFrame)
				err = fmt.Errorf("joined: %s %w", b, e)
			}
			fmt.Println(err)
		case "listen":
			l, err := net.Listen("tcp", at)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("ready")
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { _ = trust{insecure: true}.accept(c) }()
			}
		case "take": // an abstract name
			if _, err := listenLocal(at, "unix"); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("ready")
			select {}
		}
	}
}

// anotherUser runs this program as another user and returns the first line of its output. It ends with the test.
func anotherUser(t *testing.T, call, at string) string {
	t.Helper()
	testneed.Root(t)
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "stranger") //nolint:usetesting // where the other user may read it
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "stranger")
	if err := os.WriteFile(path, exe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Dir, cmd.Env = "/", []string{strangerVariable + "=" + call + " " + at}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}, Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the other user's process: %v", err)
	}
	return line
}

// freePort is an address of the loopback interface at which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Without a token another user of the machine cannot join as a rank, keeps no rank from joining, and ends nobody.
func TestAnotherUserCannotJoin(t *testing.T) {
	p := rendezvous(t, 2)
	for _, q := range p {
		q.LocalWorld, q.LocalRank, q.Master = 1, 0, freePort(t) // ranks of several nodes, as the launcher says
	}
	p[1].Master = p[0].Master
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lead := Lead(p[0])
	for i := 0; ; i++ {
		if c, err := net.Dial("tcp", p[0].Master); err == nil {
			_ = c.Close()
			break
		}
		if i == 1000 {
			t.Fatal("rank 0 does not listen")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range mostSaid + 2 {
		if said := anotherUser(t, "join", p[0].Master); !strings.Contains(said, "user 12345") {
			t.Fatalf("the other user's process got %q, want a refusal", said)
		}
	}
	_, w := joined(t, p[1])
	until(t, w, frameWelcome)
	ended(t, lead, w)
}

// ended ends a meeting in which rank 1 has joined.
func ended(t *testing.T, lead *Session, w *wire) {
	t.Helper()
	_ = w.conn.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	_ = lead.Ready(ctx) // rank 1 has gone
	lead.server.close()
}

// A rank does not take a process of another user for rank 0.
func TestAnotherUserIsNotRankZero(t *testing.T) {
	at := freePort(t)
	if said := anotherUser(t, "listen", at); said != "ready\n" {
		t.Fatal(said)
	}
	_, err := dial(context.Background(), at, trust{}, hello{})
	if r := asRefusal(err); r == nil || !strings.Contains(r.why, "user 12345") {
		t.Errorf("the error is %v, want a refusal that names the other user", err)
	}
}

// Another user who takes the name at which ranks of a machine would meet does not keep them from meeting.
func TestAnotherUserTakesTheName(t *testing.T) {
	p := rendezvous(t, 2)
	s := &Session{place: p[0], self: ownHello(p[0])}
	if said := anotherUser(t, "take", s.socketName()); said != "ready\n" {
		t.Fatal(said)
	}
	if names := s.socketNames(); len(names) != 2 || names[1] != s.socketName() {
		t.Skipf("this user has no directory for a secret name: %q", names)
	}
	lead := Lead(p[0])
	_, w := joined(t, p[1])
	until(t, w, frameWelcome)
	ended(t, lead, w)
}

// A key is made once, is for its user alone, and is not believed if others can read it.
func TestKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	a, err := keyIn(dir)
	if err != nil || len(a) != 64 {
		t.Fatalf("%q, %v", a, err)
	}
	if b, err := keyIn(dir); b != a || err != nil {
		t.Errorf("a second time it is %q, %v", b, err)
	}
	path := filepath.Join(dir, "rank-key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := keyIn(dir); b != "" || err == nil {
		t.Errorf("a key that others can read is taken: %q", b)
	}
}

// Processes that connect and say nothing keep no rank out, however many there are.
func TestSilentStrangers(t *testing.T) {
	s := newServer(trust{token: []byte("0123456789abcdef")})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(l)
	defer s.close()
	var silent []net.Conn
	defer func() {
		for _, c := range silent {
			_ = c.Close()
		}
	}()
	for range maxStrangers + 100 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for i := range 20 {
		w, err := dial(ctx, l.Addr().String(), s.trust, hello{For: forData, Session: "a", Job: 1, From: i})
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
		defer w.conn.Close()
		c, err := s.take(ctx, dataKey{"a", 1, 0, i})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// Connections for data of other runs are not kept, nor more than a bounded number of early ones.
func TestKeptConnections(t *testing.T) {
	s := newServer(trust{})
	open := func(k dataKey) (*wire, bool) {
		a, b := net.Pipe()
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		return &wire{conn: b}, s.keep(k, a)
	}
	early, ok := open(dataKey{"other", 1, 0, 1})
	if !ok {
		t.Fatal("a connection that came before the numbers of the ranks is refused")
	}
	if _, ok := open(dataKey{"other", 1, 0, 1}); ok {
		t.Error("a second connection for the same data is kept")
	}
	s.expect("mine")
	_ = early.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := early.conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection of another run is open: %v", err)
	}
	if _, ok := open(dataKey{"other", 1, 0, 2}); ok {
		t.Error("a connection of another run is kept")
	}
	n := 0
	for i := range 2 * maxKept {
		if _, ok := open(dataKey{"mine", 1, i, 2}); ok {
			n++
		}
	}
	if n != maxKept {
		t.Errorf("%d connections are kept, want %d", n, maxKept)
	}
	if c, err := s.take(t.Context(), dataKey{"mine", 1, 0, 2}); err != nil || c == nil {
		t.Error(err)
	}
	if _, ok := open(dataKey{"mine", 1, -1, 2}); !ok {
		t.Error("there is no room after one was taken")
	}
	s.forget(1)
	if s.kept != 0 || len(s.data) != 0 {
		t.Errorf("%d connections and %d keys are left of a job that has ended", s.kept, len(s.data))
	}
}
