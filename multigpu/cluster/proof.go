package cluster

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// trust is how this process and its peers on other machines prove that they belong together.
type trust struct {
	token    []byte // nil for none
	insecure bool   // accept peers without a token
}

// minToken is the least length of a token.
const minToken = 16

// Token returns the secret of GNB_TOKEN or GNB_TOKEN_FILE, empty if neither is set, and whether
// GNB_INSECURE allows to do without it.
func Token() (token string, insecure bool, err error) {
	t, err := trustFromEnv()
	return string(t.token), t.insecure, err
}

// trustFromEnv reads GNB_TOKEN, GNB_TOKEN_FILE and GNB_INSECURE.
func trustFromEnv() (trust, error) {
	t := trust{insecure: envknob.Insecure.On()}
	text, from := envknob.Token.Get(), envknob.Token.Name
	if path := envknob.TokenFile.Get(); path != "" {
		if text != "" {
			return t, fmt.Errorf("cluster: %s and %s are both set; set one", envknob.Token, envknob.TokenFile)
		}
		b, err := readSecret(path)
		if err != nil {
			return t, err
		}
		text, from = strings.TrimSpace(string(b)), path
		if text == "" {
			return t, fmt.Errorf("cluster: the file %s of %s is empty; put a secret of at least %d characters into it", path, envknob.TokenFile, minToken)
		}
	}
	if text == "" {
		return t, nil
	}
	if len(text) < minToken {
		return t, fmt.Errorf("cluster: the token of %s has %d characters; it needs at least %d, such as the output of: openssl rand -hex 16", from, len(text), minToken)
	}
	t.token = []byte(text)
	return t, nil
}

func readSecret(path string) ([]byte, error) {
	st, err := os.Stat(path) // before opening: opening a pipe would wait
	switch {
	case err != nil:
		return nil, fmt.Errorf("cluster: reading the token of %s: %w", envknob.TokenFile, err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("cluster: %s of %s is not a file", path, envknob.TokenFile)
	case st.Mode().Perm()&(fs.ModePerm&^0o700) != 0:
		return nil, fmt.Errorf("cluster: others may read the token file %s (its mode is %#o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	case st.Size() > 64<<10:
		return nil, fmt.Errorf("cluster: the token file %s has %d bytes; a token is a line of text", path, st.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: reading the token of %s: %w", envknob.TokenFile, err)
	}
	return b, nil
}

// The two sides of a connection over TCP prove that they know the token without sending it:
//
//	listener  magic, 32 random bytes
//	dialler   magic, 32 random bytes, proof
//	listener  'y' and proof, or a frame of refusal
//
// A proof is HMAC-SHA-256 by the token over the side's name and both random parts; zeros without a
// token. The frames that follow are neither encrypted nor signed.
const (
	magic    = "GraphNB-cluster1"
	nonceLen = 32
)

// proofPatience bounds the time of this exchange.
const proofPatience = 10 * time.Second

func (t trust) proof(side string, listener, dialler []byte) []byte {
	if t.token == nil {
		return make([]byte, sha256.Size)
	}
	key := make([]byte, sha256.BlockSize)
	if len(t.token) > len(key) {
		sum := sha256.Sum256(t.token)
		copy(key, sum[:])
	} else {
		copy(key, t.token)
	}
	pad := func(x byte) []byte {
		out := make([]byte, len(key))
		for i := range key {
			out[i] = key[i] ^ x
		}
		return out
	}
	inner := sha256.New()
	for _, b := range [][]byte{pad(0x36), []byte(side), listener, dialler} {
		_, _ = inner.Write(b) // never fails
	}
	outer := sha256.New()
	_, _ = outer.Write(pad(0x5c))
	_, _ = outer.Write(inner.Sum(nil))
	return outer.Sum(nil)
}

// accept is the listener's side. The peer's refusal is sent to it.
func (t trust) accept(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(proofPatience)); err != nil {
		return err
	}
	mine := make([]byte, nonceLen)
	_, _ = rand.Read(mine) // never fails
	if _, err := c.Write(append([]byte(magic), mine...)); err != nil {
		return err
	}
	in := make([]byte, len(magic)+nonceLen+sha256.Size)
	if _, err := io.ReadFull(c, in); err != nil {
		return err
	}
	if string(in[:len(magic)]) != magic {
		return errors.New("cluster: the peer does not speak this protocol")
	}
	theirs, proof := in[len(magic):len(magic)+nonceLen], in[len(magic)+nonceLen:]
	why := ""
	switch {
	case subtle.ConstantTimeCompare(proof, t.proof("dialler", mine, theirs)) != 1 && t.token == nil:
		why = fmt.Sprintf("it has a token and rank 0 has none; set %s or %s on every machine, also on that of rank 0", envknob.Token, envknob.TokenFile)
	case subtle.ConstantTimeCompare(proof, t.proof("dialler", mine, theirs)) != 1:
		why = fmt.Sprintf("it does not prove the token that rank 0 has; set the same %s or %s on every machine", envknob.Token, envknob.TokenFile)
	case t.token == nil && !t.insecure:
		why = whyStrange(c)
	}
	if why != "" {
		w := wire{conn: c}
		_ = w.send(frameRefusal, []byte(why)) // the peer may have gone
		return fmt.Errorf("cluster: rank 0 refused a process at %s: %w", c.RemoteAddr(), &refusal{why})
	}
	if _, err := c.Write(append([]byte{'y'}, t.proof("listener", mine, theirs)...)); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

var noToken = fmt.Sprintf("ranks on other machines must prove a token and none is set; set %s or %s to the same secret on every machine, or %s=1 (--insecure) on a network that you trust",
	envknob.Token, envknob.TokenFile, envknob.Insecure)

// refusal is the error of a connection that the other side, or this one, refuses for good.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// prove is the dialler's side.
func (t trust) prove(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(proofPatience)); err != nil {
		return err
	}
	first := make([]byte, len(magic)+nonceLen)
	if _, err := io.ReadFull(c, first); err != nil {
		return err
	}
	if string(first[:len(magic)]) != magic {
		return &refusal{fmt.Sprintf("what answers at %s is not rank 0 of a run", c.RemoteAddr())}
	}
	strange := ""
	if t.token == nil && !t.insecure {
		strange = whyStrange(c) // now, while the peer is certainly there; its own reason to refuse comes first
	}
	mine := make([]byte, nonceLen)
	_, _ = rand.Read(mine)
	theirs := first[len(magic):]
	out := append(append([]byte(magic), mine...), t.proof("dialler", theirs, mine)...)
	if _, err := c.Write(out); err != nil {
		return err
	}
	w := wire{conn: c}
	if _, err := io.ReadFull(c, w.head[:1]); err != nil {
		return err
	}
	if w.head[0] == frameRefusal {
		return refused(c)
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(c, proof); err != nil {
		return err
	}
	switch {
	case w.head[0] != 'y' || subtle.ConstantTimeCompare(proof, t.proof("listener", theirs, mine)) != 1:
		return &refusal{fmt.Sprintf("%s does not prove the token; set the same %s or %s on every machine", c.RemoteAddr(), envknob.Token, envknob.TokenFile)}
	case strange != "":
		return &refusal{strange}
	}
	return c.SetDeadline(time.Time{})
}

// refused reads the rest of a frame of refusal.
func refused(c net.Conn) error {
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		return err
	}
	n := int(size[0]) | int(size[1])<<8
	text := make([]byte, min(n, 4<<10))
	if _, err := io.ReadFull(c, text); err != nil {
		return err
	}
	return &refusal{string(text)}
}

// whyStrange returns the reason why the peer of a TCP connection cannot do without a token, "" if it can: it is a process of
// this user on this machine, as the kernel says.
func whyStrange(c net.Conn) string {
	if !sameHost(c) {
		return noToken
	}
	switch uid, ok := tcpUser(c); {
	case !ok:
		return "this machine's kernel does not tell whose process is at the other end, and no token is set; set " + envknob.Token.Name + " or " + envknob.TokenFile.Name + " to the same secret for every rank"
	case uid != os.Getuid():
		return fmt.Sprintf("a process of user %d is at the other end of a connection of user %d, and no token is set", uid, os.Getuid())
	}
	return ""
}

// sameHost reports whether the peer of a TCP connection is on this host: it comes from a loopback
// address, or from the address that it connected to.
func sameHost(c net.Conn) bool {
	a, ok1 := c.LocalAddr().(*net.TCPAddr)
	b, ok2 := c.RemoteAddr().(*net.TCPAddr)
	return ok1 && ok2 && (b.IP.IsLoopback() || a.IP.Equal(b.IP))
}
