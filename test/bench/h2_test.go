package bench_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawClient speaks just enough HTTP/2 over TLS to send requests whose bodies
// are ready and to read the answers. Any number of callers share one
// connection, as in etcd's own client. It is as cheap as that because client
// and server share the machine, and the server is what is measured.
type rawClient struct {
	conn   *tls.Conn
	framer *http2.Framer
	out    *bufio.Writer
	send   chan *rawCall
	failed chan struct{} // closed when the connection has ended
	err    error

	mu     sync.Mutex
	calls  map[uint32]*rawCall
	window int64 // the connection's flow-control window for sending
	more   *sync.Cond
}

type rawCall struct {
	headers []hpack.HeaderField
	body    []byte
	status  int
	answer  []byte // if the status is an error; may be cut off
	done    chan struct{}
}

func dialRaw(address string) (*rawClient, error) {
	conn, err := tls.Dial("tcp", address, serverTLS())
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(conn, 64<<10)
	c := &rawClient{
		conn: conn, out: out, framer: http2.NewFramer(out, bufio.NewReaderSize(conn, 64<<10)),
		send: make(chan *rawCall, 256), failed: make(chan struct{}), calls: map[uint32]*rawCall{}, window: 65535,
	}
	c.more = sync.NewCond(&c.mu)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	const windowSize = 1 << 30 // so that the server is never held back
	_, _ = out.WriteString(http2.ClientPreface)
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: windowSize}); err != nil {
		return nil, err
	}
	if err := c.framer.WriteWindowUpdate(0, windowSize); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	go c.read()
	go c.write()
	return c, nil
}

func (c *rawClient) close() { _ = c.conn.Close(); <-c.failed }

// post sends a body, and waits for an answer of success.
func (c *rawClient) post(path string, body []byte) error {
	call := &rawCall{body: body, done: make(chan struct{}), headers: []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path},
		{Name: "authorization", Value: "Bearer " + masterToken}, {Name: "content-type", Value: "application/json"},
		{Name: "accept", Value: "application/json"}, {Name: "user-agent", Value: "bench"}, {Name: "content-length", Value: strconv.Itoa(len(body))},
	}}
	select {
	case c.send <- call:
	case <-c.failed:
		return c.err
	}
	select {
	case <-call.done:
	case <-c.failed:
		return c.err
	}
	if call.status != 201 {
		return fmt.Errorf("%d: %s", call.status, call.answer)
	}
	return nil
}

// write sends the calls, and flushes whenever none is waiting.
func (c *rawClient) write() {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for id := uint32(1); ; id += 2 {
		var call *rawCall
		select {
		case call = <-c.send:
		default:
			if c.out.Flush() != nil {
				return
			}
			select {
			case call = <-c.send:
			case <-c.failed:
				return
			}
		}
		block.Reset()
		for _, field := range call.headers {
			_ = encoder.WriteField(field) // a bytes.Buffer never fails
		}
		c.reserve(int64(len(call.body)), id, call)
		if c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}) != nil ||
			c.framer.WriteData(id, true, call.body) != nil {
			return
		}
	}
}

// reserve waits until the connection's window has room for n more bytes.
func (c *rawClient) reserve(n int64, id uint32, call *rawCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = call
	for c.window < n && c.err == nil {
		c.mu.Unlock()
		_ = c.out.Flush()
		c.mu.Lock()
		if c.window < n && c.err == nil {
			c.more.Wait()
		}
	}
	c.window -= n
}

func (c *rawClient) read() {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.more.Broadcast()
			c.mu.Unlock()
			close(c.failed)
			return
		}
		c.handle(frame)
	}
}

func (c *rawClient) handle(frame http2.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f := frame.(type) {
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int64(f.Increment)
			c.more.Broadcast()
		}
	case *http2.MetaHeadersFrame:
		if call := c.calls[f.StreamID]; call != nil {
			call.status, _ = strconv.Atoi(f.PseudoValue("status"))
			c.finish(f.StreamID, call, f.StreamEnded())
		}
	case *http2.DataFrame:
		if call := c.calls[f.StreamID]; call != nil {
			if call.status != 201 {
				call.answer = append(call.answer, f.Data()...)
			}
			c.finish(f.StreamID, call, f.StreamEnded())
		}
	case *http2.RSTStreamFrame:
		if call := c.calls[f.StreamID]; call != nil && call.status == 0 {
			call.answer = []byte(f.ErrCode.String())
			c.finish(f.StreamID, call, true)
		}
	}
}

func (c *rawClient) finish(id uint32, call *rawCall, ended bool) {
	if ended {
		delete(c.calls, id)
		close(call.done)
	}
}
