package answer

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/structpb" // answer.proto imports its file
)

//go:embed answer.proto
var protoText []byte

// protoBinary is answer.proto as protoc reads it, with what it imports; go test ./gnb/answer -run TestProto -update writes it.
//
//go:embed answer.binpb
var protoBinary []byte

const serviceName = "graphnb.answer.v1.Predictions"

// describe reads answer.proto, and makes it known to this program, where reflection finds it.
var describe = sync.OnceValues(func() (protoreflect.ServiceDescriptor, error) {
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(protoBinary, &file); err != nil {
		return nil, err
	}
	f, err := protodesc.NewFile(&file, protoregistry.GlobalFiles)
	if err != nil {
		return nil, err
	}
	return f.Services().Get(0), protoregistry.GlobalFiles.RegisterFile(f)
})

// grpc returns the server of gRPC calls: each is the call of the same name over HTTP, whose JSON its messages have.
func (s *Server) grpc() *grpc.Server {
	service, err := describe()
	if err != nil {
		panic(err) // a file of this package
	}
	// Reflection needs the token, as GET /openapi.json does.
	guard := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := s.allowsCall(stream.Context()); err != nil {
			return problemOf(err).grpc()
		}
		ended := make(chan error, 1)
		go func() { ended <- caught(func() error { return next(srv, stream) }) }()
		select {
		case err := <-ended:
			return err
		case <-s.ending: // a stream would go on for ever
			return status.Error(codes.Unavailable, "answer: the server ends")
		}
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(int(s.o.MaxBody)), grpc.MaxSendMsgSize(1<<30), grpc.StreamInterceptor(guard))
	about := grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil), Metadata: service.ParentFile().Path()}
	calls := s.calls()
	calls["model"] = func(context.Context, io.Reader) (any, error) { return s.about() }
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		name := string(m.Name())
		do := calls[strings.ToLower(name)]
		about.Methods = append(about.Methods, grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			start := time.Now()
			in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
			if err := decode(in); err != nil {
				return nil, err
			}
			err := caught(func() error { return s.remote(ctx, name, do, in, out) })
			code := http.StatusOK
			if err != nil {
				p := problemOf(err)
				code, err = p.status, p.grpc()
			}
			s.stats.done("gRPC "+name, code, time.Since(start))
			return out, err
		}})
	}
	g.RegisterService(&about, s)
	alive := health.NewServer()
	alive.SetServingStatus(serviceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(g, alive)
	reflection.RegisterV1(g)
	return g
}

// caught calls do, and makes an error of a panic: gRPC runs calls in goroutines of their own, whose panics would end the program.
func caught(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &problem{http.StatusInternalServerError, "internal", fmt.Sprintf("answer: the call failed within the server: %v", r)}
			fmt.Fprintf(os.Stderr, "%v\n%s\n", err, debug.Stack())
		}
	}()
	return do()
}

// remote answers a gRPC call.
func (s *Server) remote(ctx context.Context, name string, do do, in, out proto.Message) error {
	if err := s.allowsCall(ctx); err != nil {
		return err
	}
	if do == nil {
		return refuse(http.StatusNotImplemented, "request", "this server has no call %s; start it with what that needs (gnb serve-model --help)", name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit(strings.ToLower(name)))
	defer cancel()
	body, err := json.Marshal(plain(in.ProtoReflect()))
	if err != nil {
		return refuse(http.StatusBadRequest, "request", "the request has a value that cannot be: %v", err)
	}
	value, err := do(ctx, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body, err = json.Marshal(value); err != nil {
		return err
	}
	return protojson.Unmarshal(body, out)
}

// allowsCall returns an error for a call without the token.
func (s *Server) allowsCall(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	return s.allows(strings.Join(md.Get("authorization"), " "))
}

// plain is a message as JSON has it in this package: with the names of the .proto file, and numbers of 64 bits as numbers.
func plain(m protoreflect.Message) map[string]any {
	out := map[string]any{}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch name := string(f.Name()); {
		case f.IsMap():
			all := map[string]any{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				all[k.String()] = plainValue(v)
				return true
			})
			out[name] = all
		case f.IsList():
			all := make([]any, v.List().Len())
			for i := range all {
				all[i] = plainValue(v.List().Get(i))
			}
			out[name] = all
		default:
			out[name] = plainValue(v)
		}
		return true
	})
	return out
}

func plainValue(v protoreflect.Value) any {
	switch x := v.Interface().(type) {
	case protoreflect.Message:
		return plain(x)
	case float32: // as short as it was written
		if x-x != 0 {
			return float64(x) // JSON has no such number, and says so
		}
		return json.Number(strconv.FormatFloat(float64(x), 'g', -1, 32))
	default:
		return x
	}
}

// grpc is the problem as gRPC reports it.
func (p *problem) grpc() error {
	code, ok := map[int]codes.Code{
		http.StatusBadRequest: codes.InvalidArgument, http.StatusUnauthorized: codes.Unauthenticated, http.StatusNotFound: codes.NotFound,
		http.StatusRequestEntityTooLarge: codes.ResourceExhausted, http.StatusServiceUnavailable: codes.Unavailable, http.StatusGatewayTimeout: codes.DeadlineExceeded,
		http.StatusNotImplemented: codes.Unimplemented, statusGone: codes.Canceled,
	}[p.status]
	if !ok {
		code = codes.Internal
	}
	st := status.New(code, p.text)
	if with, err := st.WithDetails(&errdetails.ErrorInfo{Reason: p.kind, Domain: "graphnb"}); err == nil {
		st = with
	}
	return st.Err()
}
