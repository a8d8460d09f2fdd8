package kernel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/phrase"
)

// fakeGoplsEnv makes this test binary a language server whose completions are the texts of all open files.
const fakeGoplsEnv = "GNB_TEST_GOPLS"

func init() {
	if os.Getenv(fakeGoplsEnv) == "" {
		return
	}
	r, texts := bufio.NewReader(os.Stdin), map[string]string{}
	var order []string
	for {
		body, err := readRPC(r)
		if err != nil {
			os.Exit(0)
		}
		var m struct {
			rpc
			Params struct {
				ProcessID      int
				TextDocument   openFile
				ContentChanges []struct{ Text string }
			} `json:"params"`
		}
		if err := json.Unmarshal(body, &m); err != nil {
			os.Exit(3)
		}
		file := m.Params.TextDocument
		switch m.Method {
		case "initialize":
			_ = sendRPC(os.Stdout, rpc{Method: "window/logMessage", Params: json.RawMessage(`{"message": "starting"}`)})
			_ = sendRPC(os.Stdout, rpc{ID: m.ID, Result: fmt.Appendf(nil, `{"pid": %d}`, m.Params.ProcessID)})
		case "textDocument/didOpen":
			order = append(order, file.URI)
			texts[file.URI] = fmt.Sprintf("%s@%d", file.Text, file.Version)
		case "textDocument/didChange":
			texts[file.URI] = fmt.Sprintf("%s@%d", m.Params.ContentChanges[0].Text, file.Version)
		case "textDocument/completion":
			var all []string
			for _, uri := range order {
				all = append(all, texts[uri])
			}
			b, _ := json.Marshal(all)
			_ = sendRPC(os.Stdout, rpc{ID: m.ID, Result: b})
		case "exit":
			os.Exit(0)
		}
	}
}

// editorClient sends messages to a server as GoNB does.
type editorClient struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	id   int
}

func (c *editorClient) tell(method, params string) {
	c.t.Helper()
	if err := sendRPC(c.conn, rpc{Method: method, Params: json.RawMessage(params)}); err != nil {
		c.t.Fatal(err)
	}
}

// ask returns the result of a request.
func (c *editorClient) ask(method, params string) string {
	c.t.Helper()
	c.id++
	id := fmt.Sprint(c.id)
	if err := sendRPC(c.conn, rpc{ID: json.RawMessage(id), Method: method, Params: json.RawMessage(params)}); err != nil {
		c.t.Fatal(err)
	}
	for {
		body, err := readRPC(c.r)
		if err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
		var m rpc
		if err := json.Unmarshal(body, &m); err != nil {
			c.t.Fatal(err)
		}
		if string(m.ID) == id {
			return string(m.Result)
		}
		if m.Method == "" {
			c.t.Errorf("an answer without a request: %s", body)
		}
	}
}

// Before gopls is installed, a kernel's editor gives no answers. As soon as gopls is installed it
// gives answers, for the files as they are then: opened, changed and closed before.
func TestEditorTakesUpGopls(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a script of sh")
	}
	dir, err := os.MkdirTemp("", "gnb-ed") //nolint:usetesting // a short name: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := StandIn(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	place := EditorDir(dir)
	if text, err := os.ReadFile(filepath.Join(place, "gopls")); err != nil || !strings.Contains(string(text), "'"+dir+"/gnb' kernel --editor '"+place+"'") {
		t.Fatalf("the stand-in is %q, %v", text, err)
	}
	socket := filepath.Join(dir, "socket")
	served := make(chan error, 1)
	go func() { served <- ServeEditor(t.Context(), place, "unix;"+socket) }()
	connect := func() *editorClient {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			conn, err := net.Dial("unix", socket)
			if err == nil {
				t.Cleanup(func() { _ = conn.Close() })
				return &editorClient{t: t, conn: conn, r: bufio.NewReader(conn)}
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	c := connect()
	if got := c.ask("initialize", `{"processId": 7}`); !strings.Contains(got, "capabilities") {
		t.Errorf("initialize: %s", got)
	}
	c.tell("initialized", "{}")
	open := func(uri, text string) {
		c.tell("textDocument/didOpen", fmt.Sprintf(`{"textDocument": {"uri": %q, "languageId": "go", "version": 1, "text": %q}}`, uri, text))
	}
	change := func(uri, text string, version int) {
		c.tell("textDocument/didChange", fmt.Sprintf(`{"textDocument": {"uri": %q, "version": %d}, "contentChanges": [{"text": %q}]}`, uri, version, text))
	}
	open("file:///a", "old")
	open("file:///b", "gone")
	open("file:///c", "kept")
	change("file:///a", "new", 2)
	c.tell("textDocument/didClose", `{"textDocument": {"uri": "file:///b"}}`)
	if got := c.ask("textDocument/completion", "{}"); !strings.Contains(got, `"items":[]`) {
		t.Errorf("completion without gopls: %s", got)
	}
	if got := c.ask("textDocument/hover", "{}"); !strings.Contains(got, "still being built") {
		t.Errorf("documentation without gopls: %s", got)
	}
	if got := c.ask("textDocument/definition", "{}"); got != "null" && got != "" {
		t.Errorf("a definition without gopls: %s", got)
	}

	// The files are installed in the order of "gnb install": the program, then the stamp.
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(filepath.Join(place, "gopls"), []byte("#!/bin/sh\n"+fakeGoplsEnv+"=1 exec "+phrase.ShellQuoted(exe)+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if HaveEditor(place) {
		t.Error("gopls counts as installed before its stamp is written")
	}
	key, _, err := toolsCurrent(t.Context(), place, EditorTools)
	if err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(filepath.Join(place, toolsStamp), []byte(key), 0o644); err != nil {
		t.Fatal(err)
	}
	if !HaveEditor(place) || StandIn(t.Context(), dir) != nil || !HaveEditor(place) {
		t.Error("the installed gopls does not count, or the stand-in has replaced it")
	}
	want := `["new@2","kept@1"]`
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := c.ask("textDocument/completion", "{}")
		if got == want {
			break
		}
		if !strings.Contains(got, `"items":[]`) || time.Now().After(end) {
			t.Fatalf("completion with gopls: %s, want %s", got, want)
		}
	}
	change("file:///a", "newer", 3)
	if got := c.ask("textDocument/completion", "{}"); got != `["newer@3","kept@1"]` {
		t.Errorf("after a change: %s", got)
	}
	// A second client has its own gopls, which knows none of the first client's files.
	other := connect()
	other.ask("initialize", `{"processId": 8}`)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := other.ask("textDocument/completion", "{}")
		if got == "null" {
			break
		}
		if !strings.Contains(got, `"items":[]`) || time.Now().After(end) {
			t.Fatalf("another client: %s", got)
		}
	}
	// The connection ends when gopls ends.
	c.tell("exit", "null")
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := readRPC(c.r); err == nil {
		t.Error("gopls has ended, but the connection has not")
	}
	select {
	case err := <-served:
		t.Errorf("the stand-in no longer listens: %v", err)
	default:
	}
}

// Data that is not a message of the protocol ends its connection and has no other effect.
func TestEditorRefusesNonsense(t *testing.T) {
	for _, text := range []string{"", "\r\n", "Content-Length: x\r\n\r\n", "Content-Length: -1\r\n\r\n", "Content-Length: 99999999999\r\n\r\n", "Content-Length: 10\r\n\r\nshort", "no header\r\n\r\n"} {
		if body, err := readRPC(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q was read as %q", text, body)
		}
	}
	server, client := net.Pipe()
	e := &editor{dir: t.TempDir(), client: server, files: map[string]*openFile{}}
	ended := make(chan error, 1)
	go func() { ended <- e.serve(t.Context()) }()
	go func() { _, _ = io.WriteString(client, "Content-Length: 3\r\n\r\n{{{") }()
	if err := <-ended; err == nil {
		t.Error("a message without valid JSON gave no error")
	}
}

// A gopls that another Go version built counts as missing, so that it is built again.
func TestEditorOfAnotherGo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a script of sh")
	}
	dir := t.TempDir()
	place := EditorDir(dir)
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"gopls": "old", toolsStamp: "built by Go 1.20"} {
		if err := os.WriteFile(filepath.Join(place, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !HaveEditor(place) {
		t.Fatal("gopls of the same Go version does not count")
	}
	if err := StandIn(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(place, "gopls")); err != nil || HaveEditor(place) || !strings.HasPrefix(string(text), "#!/bin/sh") {
		t.Errorf("the file is %q, %v; it counts: %v", text, err, HaveEditor(place))
	}
}
