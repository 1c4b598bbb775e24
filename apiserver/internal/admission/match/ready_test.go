package match_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kctl/apiserver/internal/admission/match"
)

// The first requests to a server that has just been started wait for its
// configuration instead of being refused, but not for ever.
func TestReadyWaitsForConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		readAfter, patience time.Duration
		ready               bool
		answeredAfter       time.Duration
	}{
		"it has been read":    {0, time.Minute, true, 0},
		"it is read in time":  {9 * time.Second, time.Minute, true, 9 * time.Second},
		"it is not":           {time.Minute, time.Minute, false, 10 * time.Second},
		"the client gives up": {9 * time.Second, time.Second, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				synced := make(chan struct{})
				if c.readAfter == 0 {
					close(synced)
				} else {
					timer := time.AfterFunc(c.readAfter, func() { close(synced) })
					defer timer.Stop()
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				start := time.Now()
				if err := match.Ready(ctx, synced); (err == nil) != c.ready || time.Since(start) != c.answeredAfter {
					t.Errorf("%v after %s", err, time.Since(start))
				}
			})
		})
	}
}
