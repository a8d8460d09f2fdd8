package answer_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/graphnb/graphnb/gnb/answer"
	"github.com/graphnb/graphnb/gnb/predict"
)

var update = flag.Bool("update", false, "write answer.binpb")

// service compiles answer.proto.
func service(t *testing.T) protoreflect.ServiceDescriptor {
	t.Helper()
	const path = "graphnb/answer/v1/answer.proto"
	text, err := os.ReadFile("answer.proto")
	if err != nil {
		t.Fatal(err)
	}
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{path: string(text)})})}
	files, err := c.Compile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Services().Get(0)
}

// The server's description of its calls is answer.proto.
func TestProto(t *testing.T) {
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(service(t).ParentFile()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("answer.binpb", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("answer.binpb"); err != nil || string(got) != string(want) {
		t.Errorf("answer.binpb is not answer.proto (%v); go test ./gnb/answer -run TestProto -update writes it", err)
	}
}

// remote is a client of gRPC calls.
type remote struct {
	service protoreflect.ServiceDescriptor
	conn    *grpc.ClientConn
}

func dial(t *testing.T, address string, o ...grpc.DialOption) remote {
	t.Helper()
	conn, err := grpc.NewClient(address, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return remote{service(t), conn}
}

// call makes a call, with requests and answers as JSON.
func (r remote) call(ctx context.Context, name, request string) (any, error) {
	m := r.service.Methods().ByName(protoreflect.Name(name))
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		return nil, err
	}
	if err := r.conn.Invoke(ctx, "/"+string(r.service.FullName())+"/"+name, in, out); err != nil {
		return nil, err
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(out)
	if err != nil {
		return nil, err
	}
	var v any
	return v, json.Unmarshal(data, &v)
}

// serve serves until the test ends, or stop is called, which returns how long the end took.
func serve(t *testing.T, p *predict.Predictor, o answer.Options) (address string, stop func() time.Duration) {
	t.Helper()
	s, err := answer.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	done := false
	stop = func() time.Duration {
		if done {
			return 0
		}
		done = true
		start := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		return time.Since(start)
	}
	t.Cleanup(func() { stop() })
	return l.Addr().String(), stop
}

// Calls over gRPC, on the port of HTTP, have the answers of the calls over HTTP; an idle client does not hold up the end.
func TestCallsOverGRPC(t *testing.T) {
	p := predictor(t, 1)
	address, stop := serve(t, p, answer.Options{Additions: answer.InMemory, Drain: time.Minute, Reload: func(ctx context.Context) (*predict.Predictor, error) {
		return predictor(t, 1), nil
	}})
	c := dial(t, address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	fresh := `{"nodes": [{"id": "n", "features": [1,2.5,3,4,5,6,7,1e-9]}], "edges": [{"source": "n", "target": "7", "weight": 1}]}`
	for name, request := range map[string]string{
		"Nodes": `{"ids": ["7", "99"]}`, "New": fresh, "Explain": `{"id": "7", "method": "gradient-input"}`,
	} {
		got, err := c.call(t.Context(), name, request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if status, want := ask(t, "http://"+address+"/v1/"+strings.ToLower(name), request); status != 200 || !sameValues(got, want) {
			t.Errorf("%s: %v, and over HTTP %v", name, got, want)
		}
	}
	if got, err := c.call(t.Context(), "Model", "{}"); err != nil || got.(map[string]any)["kind"] != "classes" {
		t.Errorf("Model: %v, %v", got, err)
	}
	if got, err := c.call(t.Context(), "Edges", fresh); err != nil || got.(map[string]any)["nodes"] != "1" {
		t.Errorf("Edges: %v, %v", got, err)
	}
	if got, err := c.call(t.Context(), "Reload", "{}"); err != nil || !strings.Contains(got.(map[string]any)["model"].(string), "classes by run") {
		t.Errorf("Reload: %v, %v", got, err)
	}
	if _, err := c.call(t.Context(), "Nodes", `{"ids": ["n"]}`); err != nil {
		t.Errorf("an added node after a reload: %v", err)
	}
	for _, bad := range []struct {
		name, request string
		code          codes.Code
		kind, want    string
	}{
		{"Nodes", `{"ids": ["500"]}`, codes.NotFound, "unknown_node", "500"},
		{"Nodes", "{}", codes.InvalidArgument, "request", "no nodes"},
		{"Top", `{"id": "1"}`, codes.InvalidArgument, "request", "does not predict links"},
		{"Scores", `{"pairs": [{"source": "1", "target": "2"}]}`, codes.InvalidArgument, "request", "links"},
		{"New", `{"nodes": [{"id": "m", "features": ["NaN",1,1,1,1,1,1,1]}]}`, codes.InvalidArgument, "request", "NaN"},
	} {
		_, err := c.call(t.Context(), bad.name, bad.request)
		st := status.Convert(err)
		kind := ""
		for _, d := range st.Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok {
				kind = info.Reason
			}
		}
		if st.Code() != bad.code || kind != bad.kind || !strings.Contains(st.Message(), bad.want) {
			t.Errorf("%s %s: %v %q %q", bad.name, bad.request, st.Code(), kind, st.Message())
		}
	}
	r, err := healthpb.NewHealthClient(c.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "graphnb.answer.v1.Predictions"})
	if err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", r, err)
	}
	watch, err := healthpb.NewHealthClient(c.conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	if took := stop(); took > 10*time.Second { // also beside one that watches its health
		t.Errorf("the end took %v beside an idle client", took)
	}
}

// sameValues compares values of JSON; those of gRPC leave out what is empty, and 32-bit numbers that were read as 64-bit ones are equal to
// 1e-6.
func sameValues(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range y {
			if !sameValues(x[k], v) && !(x[k] == nil && (v == nil || reflect.ValueOf(v).IsZero())) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameValues(x[i], y[i]) {
				return false
			}
		}
		return true
	case float64:
		y, ok := b.(float64)
		return ok && (x-y)*(x-y) <= 1e-12*y*y
	}
	return a == b
}

// With TLS and a token, gRPC and HTTP/1.1 share the port; without the token there is no answer, and no description either.
func TestGRPCWithToken(t *testing.T) {
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS()
	certificate := made.TLS.Certificates[0]
	pool := x509.NewCertPool()
	pool.AddCert(made.Certificate())
	made.Close()
	address, _ := serve(t, predictor(t, 1), answer.Options{Token: "secret", Certificate: &certificate})
	c := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"})))
	if _, err := c.call(t.Context(), "Nodes", `{"ids": ["1"]}`); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
	with := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret")
	if _, err := c.call(with, "Nodes", `{"ids": ["1"]}`); err != nil {
		t.Error(err)
	}
	list := func(ctx context.Context) (*reflectionpb.ServerReflectionResponse, error) {
		stream, err := reflectionpb.NewServerReflectionClient(c.conn).ServerReflectionInfo(ctx)
		if err != nil {
			return nil, err
		}
		if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "graphnb.answer.v1.Predictions"}}); err != nil && !errors.Is(err, io.EOF) { // then Recv says why
			return nil, err
		}
		return stream.Recv()
	}
	if _, err := list(t.Context()); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the description without a token: %v", err)
	}
	if r, err := list(with); err != nil || len(r.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("the description: %v, %v", r, err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}}} // HTTP/1.1
	r, err := client.Get("https://" + address + "/healthz")
	if err != nil || r.StatusCode != 200 {
		t.Fatal(r, err)
	}
	_ = r.Body.Close()
}

// A panic in a call is that call's error.
func TestPanicInACall(t *testing.T) {
	address, _ := serve(t, predictor(t, 1), answer.Options{Reload: func(context.Context) (*predict.Predictor, error) { panic("oh") }})
	c := dial(t, address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if _, err := c.call(t.Context(), "Reload", "{}"); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "oh") {
		t.Errorf("a panic: %v", err)
	}
	if _, err := c.call(t.Context(), "Nodes", `{"ids": ["1"]}`); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}
