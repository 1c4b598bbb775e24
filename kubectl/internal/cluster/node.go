package cluster

import (
	"context"
	"errors"
	"os"
	"strings"
)

// SocketPath is the file of a runtime's endpoint.
func SocketPath(endpoint string) string { return strings.TrimPrefix(endpoint, "unix://") }

// RuntimeState asks the container runtime at an endpoint: whether it answers,
// and if it does, why it can't run pods yet, as one without a network.
func RuntimeState(ctx context.Context, endpoint string) (notReady, err error) {
	runtime := runtimeAt(SocketPath(endpoint))
	defer runtime.close()
	err = runtime.notReady(ctx)
	if errors.Is(err, errNotReady) {
		return err, nil
	}
	return nil, err
}

// RemoveNode takes away what a kubelet made on this machine: the pods in its
// runtime, and its directory with what is mounted there.
func RemoveNode(ctx context.Context, endpoint, rootDir string) error {
	if _, err := removeSandboxes(ctx, SocketPath(endpoint), func() error { return nil }); err != nil {
		return err
	}
	l := Layout{Dir: rootDir}
	if err := l.unmount(); err != nil {
		return err
	}
	mounts, err := l.mounts()
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return errors.New(mounts[0] + " is still mounted")
	}
	return os.RemoveAll(rootDir)
}
