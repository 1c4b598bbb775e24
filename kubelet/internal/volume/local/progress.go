package local

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"kctl/proto/backoff"
	"kctl/proto/core"
)

// When people are told that a pod waits for its volume to be given to its group, and how often they
// then learn how far that is.
const (
	longChange       = 30 * time.Second
	progressInterval = time.Minute
)

// tellProgress writes events, in upstream's words, while the files of the pod's volume are given to its
// group, until end is called. done is how many were.
func (v Volume) tellProgress(ctx context.Context, pod *core.Pod, done *atomic.Int64) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	what := "Setting volume ownership for " + filepath.Join(string(pod.UID), "volumes", Directory, v.Name)
	var told sync.WaitGroup
	told.Go(func() {
		if backoff.Sleep(ctx, v.Clock, longChange) != nil {
			return
		}
		message := what + " is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/" +
			"configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods"
		for {
			v.Warn("VolumePermissionChangeInProgress", message)
			if backoff.Sleep(ctx, v.Clock, progressInterval) != nil {
				return
			}
			message = fmt.Sprintf("%s, processed %d files.", what, done.Load())
		}
	})
	return func() {
		cancel()
		told.Wait()
	}
}
