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

	"kctl/proto/upgrade"
)

// backend is one server, and the connections to it.
type backend struct {
	address string

	mu      sync.Mutex
	healthy bool
	streams map[*stream]bool
}

// stream is a client's connection, and the one to its server.
type stream struct {
	client, server net.Conn
	halfAway       bool // at the last look, one side had left
}

func (s *stream) close() {
	s.client.Close()
	s.server.Close()
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
		for one := range b.streams {
			one.close()
		}
	}
	return changed
}

func (b *backend) isHealthy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.healthy
}

// cutOff closes the connections of which one side had left at the last look already.
func (b *backend) cutOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for one := range b.streams {
		before := one.halfAway
		one.halfAway = upgrade.PeerHasLeft(one.client) || upgrade.PeerHasLeft(one.server)
		if before && one.halfAway {
			one.close()
		}
	}
}

func (b *backend) add(one *stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[one] = true
}

func (b *backend) remove(one *stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.streams, one)
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
