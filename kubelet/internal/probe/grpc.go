package probe

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"kctl/kubelet/internal/httpget"
)

// grpc uses the gRPC health protocol, without TLS.
func (p *Prober) grpc(ctx context.Context, address, service string, timeout time.Duration) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dialed := make(chan error, 1) // how the first attempt to connect ended
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(httpget.UserAgent("probe")),
		grpc.WithMaxHeaderListSize(maxMessage),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := p.dialer.DialContext(ctx, "tcp", address)
			select {
			case dialed <- err:
			default:
			}
			return c, err
		}))
	if err != nil {
		return Answer{}, fmt.Errorf("grpc: %w", err)
	}
	defer connection.Close()
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		var dialError error
		select {
		case dialError = <-dialed:
		default: // it was still trying
		}
		return grpcFailure(err, dialError, address, timeout), nil
	}
	if s := answer.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return failed("service unhealthy (responded with %q)", s.String()), nil
	}
	return Answer{Output: "service healthy"}, nil
}

func grpcFailure(err, dialError error, address string, timeout time.Duration) Answer {
	if dialError != nil {
		return failed("error: failed to connect service at %q: %v", address, dialError)
	}
	s, _ := status.FromError(err)
	switch s.Code() {
	case codes.Unimplemented:
		return failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", s.Message())
	case codes.DeadlineExceeded:
		return failed("timeout: health rpc did not complete within %v", timeout)
	}
	return failed("error: health rpc failed: %s", err)
}
