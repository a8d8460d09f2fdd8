package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// errUnfit is the error of an address at which there is no graph server, or none that this program may trust: asking it
// again cannot help.
type errUnfit struct{ error }

// unfit looks why a server does not answer, by a connection of its own, whose errors have types. It returns an error if
// waiting cannot help, and nil otherwise: a server that does not run yet, or again, may come. So may the name of a host: a
// pod of Kubernetes has one once it runs.
func (c *Client) unfit(ctx context.Context, s *server) error {
	const patience = 5 * time.Second
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		if bad, ok := errors.AsType[*net.AddrError](err); ok {
			return errUnfit{bad}
		}
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience)) // a closed connection fails below
	if c.tls != nil {
		config := c.tls.Clone()
		config.NextProtos = []string{"h2"}
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(s.address)
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return unfitTLS(err)
		}
		conn = secure
	}
	answered, err := speaksHTTP2(conn)
	if answered || err != nil || c.tls != nil {
		return err
	}
	// It closes the connection without a word, as a server of TLS does.
	again, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil
	}
	defer again.Close()
	err = tls.Client(again, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).HandshakeContext(ctx) // nothing is sent over it
	if err == nil {
		return errTLS
	}
	return nil
}

var errTLS = errUnfit{errors.New("what answers there speaks TLS; begin the address with grpcs://")}

// unfitTLS returns the reason why a handshake can never succeed, nil if it may.
func unfitTLS(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return errUnfit{fmt.Errorf("this program does not trust its certificate: %w; name the certificate with ?ca=FILE in the address", err)}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errUnfit{fmt.Errorf("its certificate is not valid for this address: %w", err)}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return errUnfit{errors.New("what answers there does not speak TLS; another port may be meant, or grpc:// for a server without a certificate")}
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return errUnfit{fmt.Errorf("it refuses the connection: %w", err)}
	}
	return nil
}

// speaksHTTP2 returns an error if what answers is no server of HTTP/2, over which gRPC speaks: each begins with a frame of
// settings. answered is false if nothing comes.
func speaksHTTP2(conn net.Conn) (answered bool, err error) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // and no settings
	if _, err := io.WriteString(conn, preface); err != nil {
		return false, nil
	}
	head := make([]byte, 9)
	n, _ := io.ReadFull(conn, head) // less if it closes the connection
	switch head = head[:n]; {
	case n == 0, n == 9 && head[3] == 4: // it ends, or it sends its settings
		return n > 0, nil
	case n >= 2 && head[0] == 21 && head[1] == 3: // an alert of TLS
		return true, errTLS
	}
	return true, errUnfit{fmt.Errorf("what answers there is no graph server (it says %q); another port may be meant", head)}
}
