package cri

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/tracing"
)

const (
	// callTimeout is how long an ordinary call may take: upstream's
	// runtimeRequestTimeout.
	callTimeout = 2 * time.Minute
	// maxMessage bounds one message of the runtime's; lists of many containers
	// are large.
	maxMessage = 16 << 20
	// streamWindow is how much of an answer the runtime may send before it is read:
	// gRPC's least. Of a message that is being read, all may come at once.
	streamWindow = 64 << 10
	// connectionWindow does not wait for readers.
	connectionWindow = 1 << 20
	// pingAfter is how long the connection may be silent before it is checked.
	// containerd closes connections that ping more often than every 5 minutes.
	pingAfter = 6 * time.Minute
)

// Options are a Client's settings; the zero value is right for most.
type Options struct {
	// Timeout is the deadline of calls that do not wait for a container;
	// zero means two minutes.
	Timeout time.Duration
	// Observe, if set, is called after every unary call, with its CRI method name,
	// duration and result. It must not block.
	Observe func(method string, took time.Duration, err error)
	// Tracer makes a span of every call, which the runtime continues if it traces;
	// nil makes none.
	Tracer *tracing.Tracer
}

// Client talks to one runtime. It is safe for concurrent use, and reconnects by
// itself when the runtime was away.
type Client struct {
	close      func() error
	connection grpc.ClientConnInterface
	runtime    runtimeapi.RuntimeServiceClient
	images     runtimeapi.ImageServiceClient
	timeout    time.Duration
	observe    func(method string, took time.Duration, err error) // may be nil
	receiving  chan struct{}                                      // held while an answer of ExecSync is received
}

// New returns a client for the runtime at endpoint: "unix:///path/to/socket",
// or just the path. It does not connect yet: the first call does.
func New(endpoint string, o Options) (*Client, error) {
	socket, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a root-only unix socket
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithUserAgent("kctl-kubelet"),
	}
	if o.Tracer != nil {
		dial = append(dial, grpc.WithStatsHandler(o.Tracer.GRPCClient()))
	}
	connection, err := grpc.NewClient("unix://"+socket, dial...)
	if err != nil {
		return nil, fmt.Errorf("container runtime at %s: %w", endpoint, err)
	}
	c := NewOver(connection, o)
	c.close = connection.Close
	return c, nil
}

// NewOver returns a client for the runtime at the end of a connection, which stays
// the caller's.
func NewOver(connection grpc.ClientConnInterface, o Options) *Client {
	if o.Observe != nil {
		connection = observed{connection, o.Observe}
	}
	return &Client{
		close:      func() error { return nil },
		connection: connection,
		runtime:    runtimeapi.NewRuntimeServiceClient(connection),
		images:     runtimeapi.NewImageServiceClient(connection),
		timeout:    cmp.Or(o.Timeout, callTimeout),
		observe:    o.Observe,
		receiving:  make(chan struct{}, 1),
	}
}

// Close ends the connection; calls under way fail.
func (c *Client) Close() error { return c.close() }

func socketPath(endpoint string) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if strings.Contains(path, "://") {
		return "", fmt.Errorf("container runtime endpoint %q: only unix:// sockets are supported", endpoint)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("container runtime endpoint %q: the socket's path must be absolute", endpoint)
	}
	return path, nil
}

// observed is a connection whose calls are reported.
type observed struct {
	grpc.ClientConnInterface
	observe func(string, time.Duration, error)
}

func (o observed) Invoke(ctx context.Context, method string, request, reply any, opts ...grpc.CallOption) error {
	start := time.Now()
	err := o.ClientConnInterface.Invoke(ctx, method, request, reply, opts...)
	o.observe(method[strings.LastIndexByte(method, '/')+1:], time.Since(start), err)
	return err
}

// call makes one call with a deadline of limit, or of the caller's if that is
// sooner, and names it in its error.
func call[Q, A any](ctx context.Context, limit time.Duration, verb, id string,
	do func(context.Context, Q, ...grpc.CallOption) (A, error), request Q,
) (A, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	answer, err := do(ctx, request)
	if err != nil {
		return answer, &Error{Verb: verb, ID: id, Err: bounded(err)}
	}
	return answer, nil
}
