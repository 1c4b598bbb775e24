package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/utils/clock"
)

const (
	// manyBrief are as many brief requests as have a line opened for them when they
	// are under way at one time.
	manyBrief = 8
	// lineAgain is how long after a line could not be opened it is tried again.
	lineAgain = 10 * time.Second
)

// lines opens a line when many brief requests are under way, and is only ever in
// addition to http.Client: what a line does not take goes by that. The zero lines
// take nothing.
type lines struct {
	open  func(ctx context.Context) (net.Conn, error) // nil where there can be none
	clock clock.PassiveClock

	underWay atomic.Int64

	mu        sync.Mutex
	line      *line
	opening   bool
	notBefore time.Time
}

// linesTo returns the lines to a server.
func linesTo(server *url.URL, config *tls.Config, dial dialer, clock clock.PassiveClock) *lines {
	l := &lines{clock: clock}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: server})
	if err != nil || proxy != nil || server.Scheme != "https" {
		return l // net/http knows what to do, or to say
	}
	config = config.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	if config.ServerName == "" {
		config.ServerName = server.Hostname()
	}
	port := server.Port()
	if port == "" {
		port = "443"
	}
	address := net.JoinHostPort(server.Hostname(), port)
	l.open = func(ctx context.Context) (net.Conn, error) {
		raw, err := dial(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close() // the handshake says why
			return nil, err
		}
		if conn.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			_ = conn.Close() // it is of no use
			return nil, errors.New("the server does not speak HTTP/2")
		}
		return conn, nil
	}
	return l
}

// enter counts a brief request, by whatever connection it goes, until the function
// that it returns is called.
func (l *lines) enter() func() {
	l.underWay.Add(1)
	return func() { l.underWay.Add(-1) }
}

// roundTrip sends a request by the line. The error is errElsewhere where there is
// none, or it does not take the request.
func (l *lines) roundTrip(r *http.Request, body []byte) (*http.Response, error) {
	if line := l.get(); line != nil {
		return line.roundTrip(r, body)
	}
	return nil, errElsewhere
}

// get returns the line, nil if there is none; if there is enough for one to do, it
// is opened beside what goes on.
func (l *lines) get() *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line != nil && l.line.usable() {
		return l.line
	}
	if l.open != nil && !l.opening && l.underWay.Load() >= manyBrief && !l.clock.Now().Before(l.notBefore) {
		l.opening = true
		go l.connect()
	}
	return nil
}

// closeIdle closes the line when nothing is under way on it any more.
func (l *lines) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line != nil {
		l.line.drain(lastStream)
	}
}

// connect opens a line and reads it to its end.
func (l *lines) connect() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	opened, err := l.greet(ctx)
	l.mu.Lock()
	l.opening = false
	if err != nil {
		l.notBefore = l.clock.Now().Add(lineAgain) // http.Client tells users of what is wrong
	} else {
		l.line = opened
	}
	l.mu.Unlock()
	if err == nil {
		opened.read()
	}
}

func (l *lines) greet(ctx context.Context) (*line, error) {
	conn, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := newLine(conn, l.clock)
	if err != nil {
		_ = conn.Close() // it has broken
	}
	return opened, err
}
