// Command grpcserver answers gRPC health checks for the probe tests: it serves
// from the start and, told so, says after a while that it no longer does.
//
//	grpcserver PORT [FAIL-AFTER]
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "grpcserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":"+args[0])
	if err != nil {
		return err
	}
	state := health.NewServer()
	if len(args) > 1 {
		after, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		time.AfterFunc(after, func() { state.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING) })
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, state)
	return server.Serve(listener)
}
