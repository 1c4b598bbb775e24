package cri

import (
	"bytes"
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ExecResult is the output and the exit code of a command in a container.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Output returns the beginning of what the command wrote, its errors last.
func (r ExecResult) Output(limit int) []byte {
	out := r.Stdout[:min(len(r.Stdout), limit)]
	return append(bytes.Clone(out), r.Stderr[:min(len(r.Stderr), limit-len(out))]...)
}

// ExecSync runs a command in a container until it ends, or until timeout, when
// the runtime kills it and the error is context.DeadlineExceeded. Zero means no
// timeout but ctx's.
func (c *Client) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (ExecResult, error) {
	limit := time.Duration(0)
	if timeout > 0 {
		limit = timeout + c.timeout // the runtime keeps the time; this is for a runtime that does not
	}
	answer, err := call(ctx, limit, "ExecSync", id, c.execSync,
		&runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: int64((timeout + time.Second - 1) / time.Second)})
	return ExecResult{Stdout: answer.GetStdout(), Stderr: answer.GetStderr(), ExitCode: answer.GetExitCode()}, err
}

// execSync makes the call such that answers are received one at a time. Each is as long
// as the container likes, up to maxMessage, and hundreds of containers may be probed
// at once. Those that wait occupy no more than streamWindow.
func (c *Client) execSync(ctx context.Context, request *runtimeapi.ExecSyncRequest,
	_ ...grpc.CallOption) (*runtimeapi.ExecSyncResponse, error) {
	start := time.Now()
	answer, err := c.receiveExec(ctx, request)
	if c.observe != nil {
		c.observe("ExecSync", time.Since(start), err)
	}
	return answer, err
}

func (c *Client) receiveExec(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := c.connection.NewStream(ctx, &grpc.StreamDesc{}, runtimeapi.RuntimeService_ExecSync_FullMethodName)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(request); err != nil {
		return nil, err
	}
	// Returns when the command has ended: that is when the runtime begins to answer.
	if _, err := stream.Header(); err != nil {
		return nil, err
	}
	select {
	case c.receiving <- struct{}{}:
		defer func() { <-c.receiving }()
	case <-ctx.Done():
		// RecvMsg might yet find a short answer that has arrived.
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	answer := &runtimeapi.ExecSyncResponse{}
	return answer, stream.RecvMsg(answer)
}
