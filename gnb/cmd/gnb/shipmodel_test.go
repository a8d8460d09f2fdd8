package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// churnFolder writes the tables of customers that the guide's pages take, into the folder customers of dir.
func churnFolder(t *testing.T, dir string) {
	t.Helper()
	var nodes, edges strings.Builder
	nodes.WriteString("id,plan,spent,churned\n")
	edges.WriteString("caller,callee\n")
	for i := range 60 {
		fmt.Fprintf(&nodes, "c%d,%s,%d,%s\n", i, []string{"free", "pro"}[i*i%7%2], 10+i*7%30, []string{"no", "yes"}[i*i*i%7%2])
		fmt.Fprintf(&edges, "c%d,c%d\nc%d,c%d\n", i, (i*7+2)%60, i, (i+9)%60)
	}
	if err := os.Mkdir(filepath.Join(dir, "customers"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()} {
		if err := os.WriteFile(filepath.Join(dir, "customers", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pageBlock returns the lines of a page's indented block that begins with a text.
func pageBlock(t *testing.T, page, first string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n    "+first)
	if !ok {
		t.Fatalf("%s has no block that begins with %q", page, first)
	}
	lines := []string{first}
	for i, line := range strings.Split(rest, "\n") {
		line, indented := strings.CutPrefix(line, "    ")
		switch {
		case i == 0:
			lines[0] += line
		case !indented:
			return lines
		default:
			lines = append(lines, line)
		}
	}
	return lines
}

// freePort returns an address of this machine at which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// awaitHealthy waits until a server answers.
func awaitHealthy(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for range 600 {
		if r, err := client.Get(url + "/healthz"); err == nil {
			_ = r.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server does not answer")
}

// writeCertificate writes the files ca.pem and key.pem of a certificate for this machine.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"ca.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// curl is the path of curl.
func curl(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	return path
}

// The commands of the page lead from two tables to an answer, as a new user types them: in a folder with the tables and nothing else. The app
// then answers without the dataset, without a home directory, and writes nothing.
func TestFromTablesToAServer(t *testing.T) {
	bin := command(t)
	curl(t)
	if runtime.GOOS != "linux" {
		t.Skip("apps are for Linux")
	}
	dir := t.TempDir()
	churnFolder(t, dir)
	lines := pageBlock(t, "ship-model.md", "gnb data convert customers churn")
	if len(lines) != 6 {
		t.Fatalf("the page has %d commands, %q; it should be at most six", len(lines), lines)
	}
	address := freePort(t)
	env := append(os.Environ(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "GNB_RUNS=")
	var last []byte
	for _, line := range lines {
		line = strings.ReplaceAll(line, "127.0.0.1:7800", address)
		line, background := strings.CutSuffix(line, " &")
		c := exec.Command("sh", "-c", "exec "+line)
		c.Dir, c.Env = dir, env
		if background {
			// The machine that serves has nothing else.
			for _, gone := range []string{"customers", "churn", "runs"} {
				if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
					t.Fatal(err)
				}
			}
			c.Env = []string{"TMPDIR=/nowhere"}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
			awaitHealthy(t, http.DefaultClient, "http://"+address)
			continue
		}
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", line, err, out, &stderr)
		}
		last = out
	}
	var got struct{ Answers []struct{ ID, Class string } }
	if err := json.Unmarshal(last, &got); err != nil || len(got.Answers) != 1 || got.Answers[0].ID != "c17" || !slices.Contains([]string{"yes", "no"}, got.Answers[0].Class) {
		t.Errorf("the answer is %s: %v", last, err)
	}
	// The app's other commands, also without HOME.
	app := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(dir, "app"), args...)
		c.Dir, c.Env = dir, []string{"TMPDIR=/nowhere"}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"predict", "c17"}, "c17  " + got.Answers[0].Class},
		{[]string{"explain", "c17"}, "node c17"},
		{[]string{"check"}, "as it was built"},
		{[]string{"--help"}, "usage: app"},
		{[]string{"predict", "--help"}, "usage: app predict [ID ...]"},
		{[]string{"serve", "--help"}, "--listen"},
		{[]string{"healthy", "http://" + address}, "http://" + address + " answers"},
		{[]string{"healthy", address}, "http://" + address + " answers"},
		{[]string{"version"}, "gnb"},
	} {
		if out, err := app(x.args...); err != nil || !strings.Contains(out, x.want) {
			t.Errorf("app %v: %v\n%s", x.args, err, out)
		}
	}
	for _, x := range []struct {
		args []string
		want string
	}{{[]string{"train"}, "there is no command"}, {[]string{"predict", "nobody"}, "is the id of no node"}, {[]string{"healthy", "http://127.0.0.1:9"}, "no server answers"}, {[]string{"healthy", "127.0.0.1:9"}, "no server answers"}, {[]string{"healthy", "198.51.100.1:7800"}, "begins with http:// or https://"}} {
		if out, err := app(x.args...); err == nil || !strings.Contains(out, x.want) {
			t.Errorf("app %v: %v\n%s", x.args, err, out)
		}
	}
	// The health check of a container does not know whether the app has a certificate. It asks a server with one so that the server logs nothing.
	tlsDir, safe := t.TempDir(), freePort(t)
	writeCertificate(t, tlsDir)
	c := exec.Command(filepath.Join(dir, "app"), "--listen", safe, "--tls-cert", "ca.pem", "--tls-key", "key.pem")
	var stderr bytes.Buffer
	c.Dir, c.Env, c.Stderr = tlsDir, []string{"TMPDIR=/nowhere"}, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var asked string
	var err error
	for range 100 {
		if asked, err = app("healthy", safe); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if err != nil || !strings.Contains(asked, "https://"+safe+" answers") || strings.Contains(stderr.String(), "handshake") {
		t.Errorf("the health of an app with a certificate: %v\n%s\nthe app says\n%s", err, asked, &stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the app there are %v, %v", entries, err)
	}
	// A cut app is no gnb.
	whole, err := os.ReadFile(filepath.Join(dir, "app"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut"), whole[:len(whole)-5000], 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(dir, "cut"), "--listen", address).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not what gnb build-server wrote") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("a cut app: %v\n%s", err, out)
	}
}

// Each line with curl on the page of the server is answered by one.
func TestCurlLines(t *testing.T) {
	command(t)
	curl(t)
	dir := t.TempDir()
	churnFolder(t, dir)
	result(t, dir, "data", "convert", "customers", "churn", "--format", "tables", "--kinds", "churned=label")
	result(t, dir, "train", "churn", "--epochs", "1", "--workers", "1", "--run", "classes")
	result(t, dir, "train", "churn", "--task", "links", "--layers", "2", "--epochs", "1", "--workers", "1", "--run", "links")
	writeCertificate(t, dir)
	start := func(args ...string) string {
		s, err := beginCommand(t, dir, append([]string{"serve-model", "--listen", "127.0.0.1:0"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return s.address
	}
	classes, links := start("classes", "--additions", "memory"), start("links", "--precompute", "2")
	t.Setenv("GNB_TOKEN", "0123456789abcdef0123456789abcdef")
	safe := start("classes", "--tls-cert", "ca.pem", "--tls-key", "key.pem")
	text, err := os.ReadFile("../../../docs/serve-model.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^    (curl .*)$`).FindAllStringSubmatch(string(text), -1)
	asked := map[string]bool{}
	for _, m := range lines {
		of := classes
		if strings.Contains(m[1], "/v1/scores") || strings.Contains(m[1], "/v1/top") {
			of = links
		}
		line := strings.NewReplacer("http://127.0.0.1:7800", of, "https://host:7800", safe).Replace(m[1])
		c := exec.Command("sh", "-c", strings.Replace(line, "curl ", "curl --silent --show-error --fail-with-body ", 1))
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || len(out) == 0 && !strings.Contains(m[1], " > ") {
			t.Errorf("%s: %v\n%s", m[1], err, out)
		}
		for _, path := range regexp.MustCompile(`:7800(/[a-z0-9/.]+)`).FindAllStringSubmatch(m[1], -1) {
			asked[path[1]] = true
		}
	}
	// The page has a line for each call of the document.
	var d struct{ Paths map[string]any }
	r, err := http.Get(classes + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	for path := range d.Paths {
		if !asked[path] {
			t.Errorf("docs/serve-model.md has no curl line for %s", path)
		}
	}
}

// asking asks a server for nodes without a break, and counts answers and failures.
type asking struct {
	answered, failed atomic.Int64
	mu               sync.Mutex
	why              map[string]int
	end              context.CancelFunc
	all              sync.WaitGroup
}

func ask(t *testing.T, url string, clients int) *asking {
	ctx, end := context.WithCancel(t.Context())
	a := &asking{end: end, why: map[string]int{}}
	for c := range clients {
		a.all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			for i := 0; ctx.Err() == nil; i++ {
				r, err := client.Get(fmt.Sprintf("%s/v1/nodes?id=%d", url, (c*97+i)%300))
				if err == nil {
					body, wrong := io.ReadAll(r.Body)
					_ = r.Body.Close()
					if err = wrong; err == nil && r.StatusCode != http.StatusOK {
						err = fmt.Errorf("status %d: %s", r.StatusCode, body)
					}
				}
				if err == nil {
					a.answered.Add(1)
					continue
				}
				a.failed.Add(1)
				a.mu.Lock()
				a.why[err.Error()]++
				a.mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	t.Cleanup(a.stop)
	return a
}

func (a *asking) stop() { a.end(); a.all.Wait() }

// more waits for n further answers.
func (a *asking) more(t *testing.T, n int64) {
	t.Helper()
	until := a.answered.Load() + n
	for range 3000 {
		if a.answered.Load() >= until {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Fatalf("%d answers, %d failures: %v", a.answered.Load(), a.failed.Load(), a.why)
}

// A server that is killed under load and started again at the same address fails the requests in between and answers those after it.
func TestModelServerKilled(t *testing.T) {
	command(t)
	dir := t.TempDir()
	result(t, dir, "data", "generate", "planted?nodes=300&features=8", "d")
	result(t, dir, "train", "d", "--epochs", "1", "--workers", "1")
	s, err := beginCommand(t, dir, "serve-model", "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	load := ask(t, s.address, 8)
	for range 3 {
		load.more(t, 100)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := s.cmd.Wait(); !errors.As(err, &exit) {
			t.Fatal(err)
		}
		for range 500 {
			if load.failed.Load() > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if s, err = beginCommand(t, dir, "serve-model", "--listen", strings.TrimPrefix(s.address, "http://")); err != nil {
			t.Fatal(err)
		}
	}
	load.more(t, 500)
	load.stop()
	if load.failed.Load() == 0 {
		t.Error("no request failed while there was no server")
	}
	for why := range load.why {
		if strings.Contains(why, "status") {
			t.Errorf("a request was refused: %s", why)
		}
	}
}

// New runs take over under load without a failed request, and SIGTERM under load ends the server with status 0.
func TestModelServerReloadsUnderLoad(t *testing.T) {
	command(t)
	dir := t.TempDir()
	result(t, dir, "data", "generate", "planted?nodes=300&features=8", "d")
	result(t, dir, "train", "d", "--epochs", "1", "--workers", "1")
	s, err := beginCommand(t, dir, "serve-model", "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	load := ask(t, s.address, 8)
	models := map[string]bool{}
	for seed := range 3 {
		load.more(t, 100)
		result(t, dir, "train", "d", "--epochs", "1", "--workers", "1", "--seed", fmt.Sprint(seed+2))
		for range 5 {
			r, err := http.Post(s.address+"/v1/reload", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Model, Error string }
			err = json.NewDecoder(r.Body).Decode(&got)
			_ = r.Body.Close()
			if err != nil || got.Model == "" {
				t.Fatalf("a reload: %+v, %v", got, err)
			}
			models[got.Model] = true
		}
	}
	load.more(t, 500)
	if load.failed.Load() > 0 || len(models) != 3 {
		t.Errorf("%d requests failed, %v, with the models %v", load.failed.Load(), load.why, models)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for s.out.Scan() {
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, s.stderr.String())
	}
	load.stop()
	for why := range load.why {
		if strings.Contains(why, "status") {
			t.Errorf("a request was refused: %s", why)
		}
	}
}

// A server compares what is larger than 256 MiB behind its first answers, and ends with a sentence if it is damaged.
func TestAppDamagedBehindFirstAnswers(t *testing.T) {
	command(t)
	if runtime.GOOS != "linux" {
		t.Skip("apps are for Linux")
	}
	if !envknob.Soak.On() {
		testneed.Skip(t, testneed.Soak, "it writes a graph of 280 MB three times")
	}
	dir := t.TempDir()
	result(t, dir, "data", "generate", "planted?nodes=70000&features=1000", "d")
	result(t, dir, "train", "d", "--epochs", "1", "--workers", "1", "--hidden", "4", "--fanout", "2,2", "--batch", "4096")
	result(t, dir, "build-server", "-o", "app")
	f, err := os.OpenFile(filepath.Join(dir, "app"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	// The features have more than half of the file.
	at, b := info.Size()/2, make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	c := exec.CommandContext(ctx, filepath.Join(dir, "app"), "--listen", "127.0.0.1:0", "--json")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if status, ok := errors.AsType[*exec.ExitError](err); !ok || status.ExitCode() != 1 || !strings.Contains(string(out), `"listening"`) || !strings.Contains(stderr.String()+string(out), "is not what gnb build-server wrote") {
		t.Errorf("%v\n%s%s", err, out, &stderr)
	}
}

// A volume of a container is a mount point, which can be neither removed nor replaced.
func TestExportModelToAMountPoint(t *testing.T) {
	bin := command(t)
	inVolume := func(script string) *exec.Cmd {
		return exec.Command("unshare", "--map-root-user", "--mount", "sh", "-ec", "mount -t tmpfs none \"$1\"\n"+script, "sh", "volume", bin)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "volume"), 0o755); err != nil {
		t.Fatal(err)
	}
	try := inVolume("")
	try.Dir = dir
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v, %s", err, out)
	}
	result(t, dir, "data", "generate", "planted?nodes=300&features=8", "d")
	result(t, dir, "train", "d", "--epochs", "1", "--workers", "1", "--run", "run")
	c := inVolume(`"$2" export-model run --out "$1"; "$2" predict "$1" 17`)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n17  ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An app of a static gnb serves in a root that has that file and nothing else, as a container FROM scratch is, and may write nothing.
func TestAppInAnEmptyRoot(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds gnb without cgo, for Linux")
	}
	if !envknob.Soak.On() {
		testneed.Skip(t, testneed.Soak, "it compiles half of the standard library and all that imports package net again")
	}
	if os.Geteuid() != 0 {
		testneed.Skip(t, testneed.Superuser, "only the superuser can change the root")
	}
	dir := t.TempDir()
	static := filepath.Join(dir, "gnb-static")
	c := exec.Command("go", "build", "-buildvcs=false", "-o", static, ".")
	c.Env = append(c.Environ(), "CGO_ENABLED=0", "GOGC=800")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	result(t, dir, "data", "generate", "planted?nodes=300&features=8", "d")
	result(t, dir, "train", "d", "--epochs", "1", "--workers", "1")
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o555); err != nil {
		t.Fatal(err)
	}
	_, r := result(t, dir, "build-server", "--program", static, "-o", filepath.Join(root, "app"))
	if r["loader"] != nil {
		t.Fatalf("the app needs a loader: %v", r)
	}
	address := freePort(t)
	c = &exec.Cmd{Path: "/app", Args: []string{"/app", "--listen", address}, Dir: "/", Env: []string{"TMPDIR=/nowhere"}, SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	awaitHealthy(t, http.DefaultClient, "http://"+address)
	a, err := http.Get("http://" + address + "/v1/nodes?id=17")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", a.StatusCode, &stderr)
	}
	out, err := (&exec.Cmd{Path: "/app", Args: []string{"/app", "healthy", "http://" + address}, Dir: "/", Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Chroot: root}}).CombinedOutput()
	if err != nil {
		t.Errorf("the health check: %v\n%s", err, out)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("the root has %v, %v", entries, err)
	}
}
