package balance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// backend is one server, and the connections to it.
type backend struct {
	address string

	mu      sync.Mutex
	healthy bool
	streams map[net.Conn]bool
}

// setHealth notes how the server answered, and reports whether that is a change. If
// it has stopped answering at all, its connections are closed; one that says
// that it is not ready may be shutting down in good order, and may finish its
// requests.
func (b *backend) setHealth(err error) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed = b.healthy != (err == nil)
	b.healthy = err == nil
	if changed && err != nil && !errors.Is(err, errNotReady) {
		for stream := range b.streams {
			stream.Close()
		}
	}
	return changed
}

func (b *backend) isHealthy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.healthy
}

func (b *backend) add(stream net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[stream] = true
}

func (b *backend) remove(stream net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.streams, stream)
}

func (b *backend) connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.streams)
}

// newChecker returns a client that makes a new connection for each check, to
// notice a server that no longer accepts any. It does not verify the
// certificate, because only the fact that there is an answer counts; clients
// verify it themselves, through the balancer.
func newChecker(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, // see above
	}}
}

var errNotReady = errors.New("it is not ready")

// checkReady asks the server whether it is ready. One that does not tell strangers
// (401, 403) at least answers, which is all that can be known.
func checkReady(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden:
		return nil
	}
	return fmt.Errorf("%w: %s", errNotReady, answer.Status)
}
