package simulated

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Connection leads to the runtime without a socket: hundreds of kubelets in one
// process need no buffers, and no goroutines, for connections to themselves.
// What passes is copied, as if it had gone over a wire.
func (r *Runtime) Connection() grpc.ClientConnInterface { return connection{r} }

type connection struct{ runtime *Runtime }

// services are what Register gives a gRPC server.
var services = []*grpc.ServiceDesc{&runtimeapi.RuntimeService_ServiceDesc, &runtimeapi.ImageService_ServiceDesc}

func (c connection) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	for _, service := range services {
		name, ok := strings.CutPrefix(method, "/"+service.ServiceName+"/")
		for i := range service.Methods {
			if !ok || service.Methods[i].MethodName != name {
				continue
			}
			if err := ctx.Err(); err != nil {
				return status.FromContextError(err).Err()
			}
			call := func() error {
				answer, err := service.Methods[i].Handler(c.runtime, ctx, func(into any) error { return transfer(into, request) }, nil)
				if err != nil {
					return status.Convert(err).Err()
				}
				return c.runtime.transferLied(name, reply, answer)
			}
			if fault := c.runtime.Fault; fault != nil {
				return fault(ctx, service.Methods[i].MethodName, call)
			}
			return call()
		}
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// transfer copies a message.
func transfer(into, from any) error {
	target, ok := into.(proto.Message)
	source, too := from.(proto.Message)
	if !ok || !too {
		return fmt.Errorf("%T and %T are not messages", into, from)
	}
	proto.Merge(target, source)
	return nil
}

// transferLied copies an answer, and lies about it.
func (r *Runtime) transferLied(method string, into, from any) error {
	if err := transfer(into, from); err != nil || r.Lie == nil {
		return err
	}
	r.Lie(method, into.(proto.Message))
	return nil
}

func (c connection) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	for _, service := range services {
		name, ok := strings.CutPrefix(method, "/"+service.ServiceName+"/")
		for i := range service.Streams {
			if !ok || service.Streams[i].StreamName != name {
				continue
			}
			s := &stream{runtime: c.runtime, method: name, ctx: ctx, requests: make(chan any, 1), answers: make(chan any), over: make(chan struct{})}
			go func() {
				err := service.Streams[i].Handler(c.runtime, serverSide{s})
				if s.err = io.EOF; err != nil {
					s.err = status.Convert(err).Err()
				}
				close(s.over)
			}()
			return clientSide{s}, nil
		}
	}
	return &unary{connection: c, ctx: ctx, method: method}, nil
}

// unary is a call of one answer, made as a stream: Invoke makes it when the answer is
// received.
type unary struct {
	clientSide
	connection connection
	ctx        context.Context
	method     string
	request    any
}

func (u *unary) Context() context.Context { return u.ctx }

func (u *unary) SendMsg(request any) error {
	u.request = request
	return nil
}

func (u *unary) RecvMsg(into any) error {
	return u.connection.Invoke(u.ctx, u.method, u.request, into)
}

// stream has one request and any number of answers. It ends when its handler
// does, and the handler when ctx does.
type stream struct {
	runtime  *Runtime
	method   string
	ctx      context.Context
	requests chan any
	answers  chan any
	asked    sync.Once
	over     chan struct{}
	err      error // how it ended, once over is closed
}

func (s *stream) Context() context.Context { return s.ctx }

type serverSide struct{ *stream }

func (serverSide) SetHeader(metadata.MD) error  { return nil }
func (serverSide) SendHeader(metadata.MD) error { return nil }
func (serverSide) SetTrailer(metadata.MD)       {}

func (s serverSide) SendMsg(answer any) error {
	select {
	case s.answers <- answer:
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s serverSide) RecvMsg(into any) error {
	select {
	case request := <-s.requests:
		return transfer(into, request)
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

type clientSide struct{ *stream }

func (clientSide) Header() (metadata.MD, error) { return nil, nil }
func (clientSide) Trailer() metadata.MD         { return nil }
func (clientSide) CloseSend() error             { return nil }

func (s clientSide) SendMsg(request any) error {
	s.asked.Do(func() { s.requests <- request })
	return nil
}

func (s clientSide) RecvMsg(into any) error {
	select {
	case answer := <-s.answers:
		return s.runtime.transferLied(s.method, into, answer)
	case <-s.over:
		return s.err
	}
}
