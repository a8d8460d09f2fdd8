// Package remote gets a graph from servers (package gnb/serve, the command gnb serve) instead of
// from files. Imported by a program, it lets [gnb.Load] take the address of servers:
//
//	import _ "github.com/graphnb/graphnb/gnb/remote"
//
//	ds := gnb.Must(gnb.Load(ctx, "grpc://10.0.0.5:7700"))
//
// Package gnb does not import it, because gRPC adds about 120 packages and a notebook's cells link
// often. The command gnb does.
//
// # Basics
//
// [Open] connects to servers, which must have the same dataset, and the [Client] asks them: for rows
// of features ([Client.Rows]) and labels ([Client.Labels]), for arrays of all nodes, and for the
// edges that nodes take at a hop ([Client.Division]). [Client.Dataset] gets the whole dataset.
//
// gnb.Load gets the splits and the degrees of an address, and remembers the address: the workers of a
// run then ask the servers for the edges, features and labels of each batch.
//
// # Failures
//
// An answer depends on the request alone, so a request that fails because a server ends, restarts
// or cannot be reached is repeated, at another server with the same part if there is one, until
// Options.Timeout. The result is the same. The error after that names the server, the part and the
// request, and is a [cluster.Lost]. A request that a server refuses is not repeated.
//
// # Addresses
//
//	grpc://HOST:PORT,HOST:PORT       without TLS, for servers on this machine
//	grpcs://HOST:PORT?ca=FILE.pem    with TLS; ca is the certificate to trust, by default the system's
//	grpc://HOST:PORT?copy=topology   gnb.Load copies the graph too, and only features travel later
//	grpc://HOST:PORT?copy=all        gnb.Load copies the dataset, and the servers are not needed later
//
// The token is that of GNB_TOKEN or GNB_TOKEN_FILE. Without TLS, a server on another machine is
// refused unless GNB_INSECURE is set, because others could read the token and the data.
package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

func init() {
	datasets.RegisterRemote(func(ctx context.Context, address string, o datasets.LoadOptions) (*dataset.Dataset, error) {
		c, err := Open(ctx, address, Options{})
		if err != nil {
			return nil, err
		}
		at, _ := parse(address)
		divided.NameServers(at.String()) // a program that loads an address has it of its user
		var ds *dataset.Dataset
		switch at.copies {
		case copyAll:
			ds, err = c.Dataset(ctx, o.Progress)
		default:
			ds, err = c.outline(ctx, at, o.Progress)
		}
		return ds, errors.Join(err, c.Close())
	})
	divided.RegisterFar(func(ctx context.Context, address string) (divided.Far, error) { return Open(ctx, address, Options{}) })
}

// Options configure a [Client]. The zero value takes the token from the environment.
type Options struct {
	// Token is the servers'; empty means that of GNB_TOKEN or GNB_TOKEN_FILE.
	Token string
	// TLS configures TLS for grpcs addresses; nil means the system's certificates, or those of ca.
	TLS *tls.Config
	// Insecure allows servers on other machines without TLS; GNB_INSECURE does too.
	Insecure bool
	// Timeout is how long a request is repeated, and how long an answer may take that comes with less than 64 KiB a second;
	// 0 means 2 minutes.
	Timeout time.Duration
	// Notes gets a sentence when a server has let a request wait for 5 seconds: which server, for what and since when. Several
	// goroutines may call it at once. nil means that the sentence is printed to standard error.
	Notes func(sentence string)
}

var _ divided.Far = (*Client)(nil)

// Client asks servers. It is safe for concurrent use.
type Client struct {
	o       Options
	tls     *tls.Config // nil for none
	servers []*server
	hello   bulk.Hello
	// holders are the servers that have each part, and owner one of them, as evenly as possible.
	holders [][]int
	owner   []int
	// anywhere are all servers, and sizes the sizes of their arrays.
	anywhere []int
	sizes    map[string]int64
	// closed is closed by Close.
	closed chan struct{}
	close  sync.Once

	parts     atomic.Pointer[[]int32]
	partsMu   sync.Mutex
	degreesMu sync.Mutex
	degrees   *graphops.DegreeTable
}

// server is one server's connection.
type server struct {
	address  string
	conn     *grpc.ClientConn
	answered atomic.Bool  // it has answered a request
	said     atomic.Int64 // when Options.Notes was last told about it, in nanoseconds
}

// Open connects to the servers of an address, which together have all parts of one dataset. It
// waits for each of them up to Options.Timeout.
func Open(ctx context.Context, address string, o Options) (*Client, error) {
	at, err := parse(address)
	if err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	if o.Timeout < 0 {
		return nil, fmt.Errorf("remote: Timeout is %v; it is how long requests are repeated", o.Timeout)
	}
	if o.Notes == nil {
		o.Notes = func(s string) { fmt.Fprintln(os.Stderr, "gnb: "+s) }
	}
	token, open, err := cluster.Token()
	if err != nil {
		return nil, err
	}
	o.Token, o.Insecure = cmp.Or(o.Token, token), o.Insecure || open
	secure, err := at.security(o)
	if err != nil {
		return nil, err
	}
	way := grpc.WithTransportCredentials(insecure.NewCredentials())
	if secure != nil {
		way = grpc.WithTransportCredentials(credentials.NewTLS(secure))
	}
	c := &Client{o: o, tls: secure, closed: make(chan struct{})}
	for _, host := range at.hosts {
		conn, err := grpc.NewClient("passthrough:///"+host, way,
			grpc.WithDefaultCallOptions(grpc.CallContentSubtype(bulk.Subtype), grpc.MaxCallRecvMsgSize(2*bulk.MaxFrame), grpc.MaxCallSendMsgSize(64<<20)),
			grpc.WithStaticStreamWindowSize(4<<20), grpc.WithStaticConnWindowSize(16<<20),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}, MinConnectTimeout: 5 * time.Second}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
			grpc.WithDisableServiceConfig(), grpc.WithUserAgent("gnb"))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("remote: %s: %w", host, err), c.Close())
		}
		c.servers = append(c.servers, &server{address: host, conn: conn})
	}
	if err := c.meet(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close closes the connections. Requests in progress, and later ones, end with an error.
func (c *Client) Close() error {
	c.close.Do(func() { close(c.closed) }) // before the connections, whose errors are repeated otherwise
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(errs...)
}

// meet asks each server what it has, and divides the parts among the servers.
func (c *Client) meet(ctx context.Context) error {
	hellos := make([]bulk.Hello, len(c.servers))
	errs := make([]error, len(c.servers))
	var all sync.WaitGroup
	for i := range c.servers {
		all.Go(func() {
			var b []byte
			r := request{method: bulk.HelloMethod, what: "what it serves", part: -1, at: []int{i}}
			r.begin = func() { b = nil }
			r.take = func(data []byte) error {
				if len(b)+len(data) > bulk.MaxFrame {
					return fmt.Errorf("it says more than %d bytes about itself", bulk.MaxFrame)
				}
				b = append(b, data...)
				return nil
			}
			if errs[i] = c.do(ctx, r); errs[i] == nil {
				if err := json.Unmarshal(b, &hellos[i]); err != nil || hellos[i].Protocol != bulk.Protocol {
					errs[i] = fmt.Errorf("remote: %s speaks version %d of the protocol and this program version %d; use the same version of GraphNB on both sides", c.servers[i].address, hellos[i].Protocol, bulk.Protocol)
				} else if err := checkHello(&hellos[i]); err != nil {
					errs[i] = fmt.Errorf("remote: %s says that it has %w; that cannot be", c.servers[i].address, err)
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range hellos { // where files and other servers are is no matter of a server's
		m := &hellos[i].Metadata
		m.Parts, m.Part, m.Arrays = nil, nil, nil
	}
	c.hello, c.sizes = hellos[0], map[string]int64{}
	c.holders, c.owner = make([][]int, max(1, c.hello.Parts)), make([]int, max(1, c.hello.Parts))
	for i, h := range hellos {
		if h.Digest != c.hello.Digest || h.Parts != c.hello.Parts || !slices.Equal(h.Sums, c.hello.Sums) {
			return fmt.Errorf("remote: %s serves %s (%.12s, %d parts) and %s serves %s (%.12s, %d parts); all servers of an address must have the same dataset, divided alike",
				c.servers[0].address, c.hello.Metadata.Name, c.hello.Digest, c.hello.Parts, c.servers[i].address, h.Metadata.Name, h.Digest, h.Parts)
		}
		c.anywhere = append(c.anywhere, i)
		for name, n := range h.Arrays {
			if old, ok := c.sizes[name]; ok && old != n || n < 0 {
				return fmt.Errorf("remote: %s has the array %s with %d bytes, and another server with %d", c.servers[i].address, name, n, old)
			}
			c.sizes[name] = n
		}
		for _, p := range h.Here {
			if p < 0 || p >= len(c.holders) {
				return fmt.Errorf("remote: %s says that it has part %d of %d", c.servers[i].address, p, h.Parts)
			}
			c.holders[p] = append(c.holders[p], i)
		}
		c.hello.Limits.Nodes = min(c.hello.Limits.Nodes, h.Limits.Nodes)
		c.hello.Limits.Edges = min(c.hello.Limits.Edges, h.Limits.Edges)
		c.hello.Limits.Bytes = min(c.hello.Limits.Bytes, h.Limits.Bytes)
	}
	for p, at := range c.holders {
		if len(at) == 0 {
			return fmt.Errorf("remote: no server of this address has part %d of %s; start one that has it, or add its address", p, c.hello.Metadata.Name)
		}
		c.owner[p] = at[p%len(at)]
	}
	for i, h := range hellos {
		if err := checkLimits(h.Limits, h.Metadata.NumNodes, h.Metadata.NumEdges); err != nil {
			return fmt.Errorf("remote: %s %w", c.servers[i].address, err)
		}
	}
	return nil
}

// address is a parsed address of servers.
type address struct {
	hosts  []string
	tls    bool
	ca     string
	copies string // one of the constants below
}

// What a program copies when it loads an address, besides splits and degrees.
const (
	copyNothing  = ""
	copyTopology = "topology"
	copyAll      = "all"
)

// String returns the address without what it copies.
func (a address) String() string {
	s := "grpc://"
	if a.tls {
		s = "grpcs://"
	}
	s += strings.Join(a.hosts, ",")
	if a.ca != "" {
		s += "?ca=" + url.QueryEscape(a.ca)
	}
	return s
}

func parse(text string) (a address, err error) {
	wrong := func(format string, args ...any) (address, error) {
		return a, fmt.Errorf("remote: the address %q %s; it is grpc://HOST:PORT,HOST:PORT or grpcs://HOST:PORT?ca=FILE, and may copy the graph (copy=topology) or the dataset (copy=all)", text, fmt.Sprintf(format, args...))
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if a.tls = scheme == "grpcs"; !ok || scheme != "grpc" && !a.tls {
		return wrong("does not begin with grpc:// or grpcs://")
	}
	hosts, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return wrong("has a wrong query (%v)", err)
	}
	for name := range values {
		if name != "ca" && name != "copy" {
			return wrong("has the unknown option %s", name)
		}
	}
	switch a.copies = values.Get("copy"); a.copies {
	case copyNothing, copyTopology, copyAll:
	default:
		return wrong("has copy=%s", a.copies)
	}
	a.ca = values.Get("ca")
	if a.ca != "" && !a.tls {
		return wrong("has a certificate, but no TLS")
	}
	seen := map[string]bool{}
	for _, h := range strings.Split(strings.TrimSuffix(hosts, "/"), ",") {
		host, port, err := net.SplitHostPort(h)
		if err != nil || host == "" || port == "" {
			return wrong("has the server %q, which is not HOST:PORT", h)
		}
		if seen[h] {
			return wrong("has the server %s twice", h)
		}
		seen[h] = true
		a.hosts = append(a.hosts, h)
	}
	return a, nil
}

// security returns how connections are protected, nil if they are not.
func (a address) security(o Options) (*tls.Config, error) {
	if !a.tls {
		for _, h := range a.hosts {
			host, _, _ := net.SplitHostPort(h)
			if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.Insecure {
				return nil, fmt.Errorf("remote: %s is on another machine, and without TLS others could read the token and the data; use grpcs://, or set GNB_INSECURE=1 in a network that you trust", h)
			}
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if o.TLS != nil {
		c = o.TLS.Clone()
	}
	if a.ca != "" {
		b, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("remote: reading the certificate: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("remote: %s has no certificate in PEM format", a.ca)
		}
	}
	return c, nil
}
