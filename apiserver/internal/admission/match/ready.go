package match

import (
	"context"
	"errors"
	"time"
)

// readyWithin is how long requests wait for configuration, as in upstream.
const readyWithin = 10 * time.Second

// Ready waits until all stored configuration has been read: until then it is
// unknown which webhooks and policies apply. A server that has just been started
// needs a moment for that. If it takes too long, requests are refused, in
// upstream's words.
func Ready(ctx context.Context, synced <-chan struct{}) error {
	select {
	case <-synced:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case <-synced:
		return nil
	case <-ctx.Done():
		return errors.New("not yet ready to handle request")
	}
}
