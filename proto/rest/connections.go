package rest

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialer makes a connection, as http.Transport asks for it.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// connections are those that a client has open.
type connections struct {
	mu   sync.Mutex
	open map[*connection]bool
	// renewable: the client's certificate is read again for each connection.
	renewable  bool
	lastClosed time.Time // when a refusal last ended them
}

// connection leaves the list when it is closed.
type connection struct {
	net.Conn
	list *connections
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, list: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*connection]bool{}
	}
	c.open[conn] = true
	return conn, nil
}

func (c *connection) Close() error {
	c.list.mu.Lock()
	delete(c.list.open, c)
	c.list.mu.Unlock()
	return c.Conn.Close()
}

// Reconnect closes every connection: later ones present the certificate that is
// in the client's files by then. Requests in flight fail, as when the server
// goes away; watches resume where they were.
func (c *Client) Reconnect() { c.connections.close() }

// reconnectEvery bounds how often refusals end connections.
const reconnectEvery = 10 * time.Second

// reconnectOnRefusal is called when a server does not recognise the client: the
// certificate that it presented may have expired, and been replaced, since.
func (c *connections) reconnectOnRefusal(now time.Time) {
	c.mu.Lock()
	again := c.renewable && now.Sub(c.lastClosed) >= reconnectEvery
	if again {
		c.lastClosed = now
	}
	c.mu.Unlock()
	if again {
		c.close()
	}
}

func (c *connections) close() {
	c.mu.Lock()
	open := make([]*connection, 0, len(c.open))
	for conn := range c.open {
		open = append(open, conn)
	}
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close() // it may have just been closed
	}
}
