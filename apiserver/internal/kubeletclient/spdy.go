package kubeletclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// upgradeTo opens a connection to the kubelet and upgrades it to SPDY. refused
// is the kubelet's answer if it does not upgrade.
func (c *Client) upgradeTo(ctx context.Context, to *url.URL,
	protocol string) (connection io.ReadWriteCloser, header http.Header, refused *http.Response, err error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), nil)
	if err != nil {
		return nil, nil, nil, dialError(err)
	}
	ask.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	ask.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	ask.Header.Set(httpstream.HeaderProtocolVersion, protocol)
	answer, err := c.verifying.RoundTrip(ask)
	if err != nil {
		return nil, nil, nil, dialError(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, nil, answer, nil
	}
	connection, ok := answer.Body.(io.ReadWriteCloser)
	if !ok {
		_ = answer.Body.Close()
		return nil, nil, nil, dialError(errors.New("the kubelet's connection can't be written to"))
	}
	return connection, answer.Header, nil, nil
}

// spdyConnection is a SPDY connection to a kubelet.
type spdyConnection struct {
	httpstream.Connection
	conn *netConn
}

// closeTimeout bounds how long writing the end of streams may take: behind data that
// a container does not read, it never gets through.
const closeTimeout = time.Second

// Close ends the streams and the connection. SPDY's own shutdown would keep it
// open while the kubelet has not answered some streams.
func (b *spdyConnection) Close() error {
	late := time.AfterFunc(closeTimeout, func() { _ = b.conn.Close() })
	defer late.Stop()
	return errors.Join(b.Connection.Close(), b.conn.Close())
}

// open opens a stream; it stops waiting when ctx ends.
func (b *spdyConnection) open(ctx context.Context, header http.Header) (httpstream.Stream, error) {
	var stream httpstream.Stream
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		stream, err = b.CreateStream(header) // has a time limit of its own
	}()
	select {
	case <-opened:
		return stream, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dialSPDY opens a SPDY connection to the kubelet. refused is its answer if it
// does not upgrade.
func (c *Client) dialSPDY(ctx context.Context, to *url.URL,
	protocol string) (connected *spdyConnection, refused *http.Response, err error) {
	connection, header, refused, err := c.upgradeTo(ctx, to, protocol)
	if err != nil || refused != nil {
		return nil, refused, err
	}
	carrier := &netConn{connection: connection, frames: newSPDYFrames(connection)}
	if got := header.Get(httpstream.HeaderUpgrade); !strings.EqualFold(got, spdy.HeaderSpdy31) {
		err = fmt.Errorf("the kubelet upgraded to %.40q, %s is needed", got, spdy.HeaderSpdy31)
		return nil, nil, errors.Join(dialError(err), carrier.Close())
	}
	if got := header.Get(httpstream.HeaderProtocolVersion); got != protocol {
		err = fmt.Errorf("the kubelet chose the protocol %.40q, %s is needed", got, protocol)
		return nil, nil, errors.Join(dialError(err), carrier.Close())
	}
	streams, err := spdy.NewClientConnectionWithPings(carrier, pingPeriod)
	if err != nil {
		return nil, nil, errors.Join(dialError(err), carrier.Close())
	}
	return &spdyConnection{streams, carrier}, nil, nil
}

// netConn adapts an upgraded connection to the net.Conn that SPDY expects, which
// only reads, writes and closes it. It may be closed more than once.
type netConn struct {
	net.Conn   // none: never called
	connection io.ReadWriteCloser
	frames     io.Reader // of the connection
	closing    sync.Once
}

func (c *netConn) Read(p []byte) (int, error)  { return c.frames.Read(p) }
func (c *netConn) Write(p []byte) (int, error) { return c.connection.Write(p) }

func (c *netConn) Close() (err error) {
	c.closing.Do(func() { err = c.connection.Close() })
	return err
}
