package servertest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/websocket"
)

// Ask sends a request as root and returns the answer and its body.
func (c *Cluster) Ask(method, path string, header http.Header, body []byte) (*http.Response, []byte) {
	c.T.Helper()
	client := c.Root()
	r, err := http.NewRequestWithContext(c.T.Context(), method, c.Address+path, bytes.NewReader(body))
	c.Must(err)
	maps.Copy(r.Header, header)
	answer, err := client.HTTP().Do(r)
	c.Must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	c.Must(err)
	return answer, text
}

// Request sends a request with no credentials but those in header. It follows
// no redirects.
func (c *Cluster) Request(method, path string, header map[string]string, body string) (*http.Response, string) {
	c.T.Helper()
	r, err := http.NewRequestWithContext(c.T.Context(), method, c.Address+path, strings.NewReader(body))
	c.Must(err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	c.Must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	c.Must(err)
	return answer, string(text)
}

// AsMaster is the header of a request by a user in system:masters.
func AsMaster() map[string]string { return map[string]string{"Authorization": "Bearer master"} }

// Speak writes text to a connection of its own, and returns the status codes of
// all answers until the server closes it.
func (c *Cluster) Speak(text string) (codes []int) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), Patience)
	defer cancel()
	// #nosec: the server's identity is not tested here
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}}
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(c.Address, "https://"))
	c.Must(err)
	defer conn.Close()
	c.Must(conn.SetDeadline(time.Now().Add(Patience)))
	_, err = io.WriteString(conn, text)
	c.Must(err)
	reader := bufio.NewReader(conn)
	for {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				c.T.Errorf("the server does not close the connection after %.100q", text)
			}
			return codes
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		codes = append(codes, answer.StatusCode)
	}
}

// Socket opens a WebSocket as root.
func (c *Cluster) Socket(path, protocol string) (*websocket.Conn, error) {
	config, err := websocket.NewConfig("wss"+strings.TrimPrefix(c.Address, "https")+path, c.Address)
	c.Must(err)
	config.TlsConfig = &tls.Config{InsecureSkipVerify: true}
	config.Protocol = []string{protocol}
	config.Header = http.Header{"Authorization": {"Bearer master"}}
	return config.DialContext(c.T.Context())
}
