package probe

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kctl/kubelet/internal/httpget"
)

// lingerSeconds keeps the closed connections of many probes from using up the
// node's ports: they wait for one second only.
const lingerSeconds = 1

func newDialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, connection syscall.RawConn) error {
		var err error
		controlErr := connection.Control(func(fd uintptr) {
			err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: lingerSeconds})
		})
		return errors.Join(controlErr, err)
	}}
}

// newTransport makes a connection for each request: that one can be made is part of
// the probe.
func newTransport(dialer *net.Dialer) *http.Transport {
	transport := httpget.NewTransport()
	transport.DialContext = dialer.DialContext
	transport.DisableCompression = true
	transport.ForceAttemptHTTP2 = true // over TLS, as upstream does
	return transport
}

func (p *Prober) httpGet(request *http.Request, timeout time.Duration) Answer {
	client := &http.Client{Transport: p.transport, Timeout: timeout, CheckRedirect: httpget.StayOnHost}
	response, err := client.Do(request)
	if err != nil {
		return failed("%v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxOutput))
	if err != nil {
		return failed("reading the answer: %v", err)
	}
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return Answer{Warning, "Probe terminated redirects, Response body: " + string(body)}
	case response.StatusCode >= 200 && response.StatusCode < 400:
		return Answer{Output: string(body)}
	}
	return failed("HTTP probe failed with statuscode: %d", response.StatusCode)
}
