package kernel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/phrase"
)

// GoNB looks for gopls only when a kernel starts. "gnb install --editor-later" therefore installs a
// script in its place, which starts "gnb kernel --editor DIR". That is a language server without
// answers, which records the files that the client opens and changes. Once the real gopls is in
// DIR, it starts gopls, replays what it recorded and passes all further messages on. So names
// complete even in a kernel that started before gopls was built.

// editorWaits is the script's text; DIR and gnb are quoted for sh.
const editorWaits = "#!/bin/sh\n# Stands in for gopls until \"gnb install\" has built it.\nexec %s kernel --editor %s \"$@\"\n"

// StandIn installs the script in place of gopls. It does nothing if gopls is already there, built
// from the sources and by the Go version that BuildTools would use, or if this system has no sh.
func StandIn(ctx context.Context, bin string) error {
	dir := EditorDir(bin)
	if _, current, err := toolsCurrent(ctx, dir, EditorTools); err != nil || current || runtime.GOOS == "windows" {
		return err
	}
	if err := os.Remove(filepath.Join(dir, toolsStamp)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("leaving gopls to a later installation: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the tools' directory: %w", err)
	}
	text := fmt.Sprintf(editorWaits, phrase.ShellQuoted(filepath.Join(bin, "gnb")), phrase.ShellQuoted(dir))
	return ReplaceFile(filepath.Join(dir, "gopls"), []byte(text), 0o755)
}

// HaveEditor reports whether the real gopls is in dir. The stamp is written last, so it proves that
// gopls is complete.
func HaveEditor(dir string) bool {
	return IsFile(filepath.Join(dir, toolsStamp)) && haveTools(dir, EditorTools)
}

// ServeEditor listens as "gopls -listen ADDRESS" does and serves each connection until ctx ends.
func ServeEditor(ctx context.Context, dir, address string) error {
	network, at, ok := strings.Cut(address, ";")
	if !ok {
		network, at = "tcp", address
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, at)
	if err != nil {
		return fmt.Errorf("listening for the editor: %w", err)
	}
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("listening for the editor: %w", err)
		}
		go func() {
			e := &editor{dir: dir, client: conn, files: map[string]*openFile{}}
			_ = e.serve(ctx) // how the connection ended does not matter
		}()
	}
}

// editor serves one connection of a client of the Language Server Protocol.
type editor struct {
	dir    string
	client net.Conn

	mu     sync.Mutex      // held while handling a message, and while gopls takes over
	params json.RawMessage // of the client's "initialize"
	files  map[string]*openFile
	order  []string       // of files, in the order of opening
	gopls  io.WriteCloser // standard input of the real gopls, once it answers
}

// openFile is the content of a file, from "didOpen" and later changes.
type openFile struct {
	URI        string `json:"uri"`
	LanguageID string `json:"languageId"`
	Version    int    `json:"version"`
	Text       string `json:"text"`
}

// rpc is a message of the protocol: a request, a notification (no ID) or a response (no method).
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// serve handles the client's messages until the client or gopls ends.
func (e *editor) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer e.client.Close()
	stop := context.AfterFunc(ctx, func() { _ = e.client.Close() })
	defer stop()
	go func() {
		defer cancel()
		if err := e.takeOver(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "gnb kernel:", err)
		}
	}()
	r := bufio.NewReader(e.client)
	for {
		body, err := readRPC(r)
		if err != nil {
			return err
		}
		e.mu.Lock()
		if e.gopls != nil {
			err = writeRPC(e.gopls, body)
		} else {
			err = e.answer(body)
		}
		e.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// notYet is the documentation shown while gopls is not installed.
const notYet = "`gopls`, which explains and completes names, is still being built. This kernel uses it as soon as it is ready."

// answer handles a message while gopls is not running.
func (e *editor) answer(body []byte) error {
	var m rpc
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("reading a message of the editor: %w", err)
	}
	if m.Method == "" {
		return nil // a response without a request
	}
	if len(m.ID) == 0 {
		e.note(m)
		return nil
	}
	var result any
	switch m.Method {
	case "initialize":
		e.params = slices.Clone(m.Params)
		result = map[string]any{"capabilities": map[string]any{}}
	case "textDocument/completion":
		result = map[string]any{"isIncomplete": true, "items": []any{}}
	case "textDocument/hover":
		result = map[string]any{"contents": map[string]any{"kind": "markdown", "value": notYet}}
	}
	b, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return sendRPC(e.client, rpc{ID: m.ID, Result: b})
}

// note records what a notification says about files. It forgets files whose notifications it cannot
// read, because gopls reads files itself.
func (e *editor) note(m rpc) {
	var p struct {
		TextDocument   openFile
		ContentChanges []struct{ Text string }
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	uri := p.TextDocument.URI
	f := e.files[uri]
	switch {
	case m.Method == "textDocument/didOpen":
		if f == nil {
			e.order = append(e.order, uri)
		}
		e.files[uri] = &p.TextDocument
	case m.Method == "textDocument/didChange" && f != nil && len(p.ContentChanges) > 0: // whole texts, as GoNB sends them
		f.Version, f.Text = p.TextDocument.Version, p.ContentChanges[len(p.ContentChanges)-1].Text
	case m.Method == "textDocument/didClose" && f != nil:
		delete(e.files, uri)
		e.order = slices.DeleteFunc(e.order, func(o string) bool { return o == uri })
	}
}

// takeOver waits for gopls and for the client's "initialize", and then lets gopls answer the
// client. It returns when gopls has ended.
func (e *editor) takeOver(ctx context.Context) error {
	for !HaveEditor(e.dir) || e.greeting() == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	c := exec.CommandContext(ctx, filepath.Join(e.dir, ExeName("gopls")))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting gopls: %w", err)
	}
	err = e.connect(in, bufio.NewReader(out))
	_ = in.Close()
	if ended := c.Wait(); ended != nil && ctx.Err() == nil {
		err = fmt.Errorf("gopls: %w", ended)
	}
	return err
}

func (e *editor) greeting() json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.params
}

// ours is the ID of this program's own "initialize".
const ours = `"gnb-initialize"`

// connect sends gopls what the client has sent so far, and passes on gopls's messages until it
// ends.
func (e *editor) connect(in io.WriteCloser, out *bufio.Reader) error {
	if err := sendRPC(in, rpc{ID: json.RawMessage(ours), Method: "initialize", Params: e.greeting()}); err != nil {
		return err
	}
	for {
		body, err := readRPC(out)
		if err != nil {
			return err
		}
		var m rpc
		if json.Unmarshal(body, &m) == nil && m.Method == "" && string(m.ID) == ours {
			break // earlier messages were for a log
		}
	}
	if err := e.hand(in); err != nil {
		return err
	}
	for {
		body, err := readRPC(out)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeRPC(e.client, body); err != nil {
			return err
		}
	}
}

// hand opens in gopls the files that the client has open. From then on the client's messages go to
// gopls.
func (e *editor) hand(in io.WriteCloser) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := sendRPC(in, rpc{Method: "initialized", Params: json.RawMessage("{}")}); err != nil {
		return err
	}
	for _, uri := range e.order {
		p, err := json.Marshal(map[string]any{"textDocument": e.files[uri]})
		if err != nil {
			return err
		}
		if err := sendRPC(in, rpc{Method: "textDocument/didOpen", Params: p}); err != nil {
			return err
		}
	}
	e.gopls = in
	return nil
}

// maxRPC is a limit that no message of a language server reaches.
const maxRPC = 64 << 20

// readRPC reads the body of a message.
func readRPC(r *bufio.Reader) ([]byte, error) {
	header, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil || n < 0 || n > maxRPC {
		return nil, fmt.Errorf("a message's Content-Length is %q", header.Get("Content-Length"))
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return body, err
}

func writeRPC(w io.Writer, body []byte) error {
	_, err := w.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...))
	return err
}

func sendRPC(w io.Writer, m rpc) error {
	m.Version = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeRPC(w, body)
}
