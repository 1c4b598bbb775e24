package command

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// wrapTransport lets users see what goes over the wire: the server's warnings
// always, the requests with -v.
func (c *cli) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return &visible{cli: c, next: next, warned: map[string]bool{}}
}

// The levels of -v, as kubectl's.
const (
	showRequests = 6
	showBodies   = 8
)

type visible struct {
	*cli
	next   http.RoundTripper
	warned map[string]bool
}

func (v *visible) RoundTrip(request *http.Request) (*http.Response, error) {
	began := v.clock.Now()
	if v.verbosity >= showBodies && request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, fmt.Errorf("reading the request's body: %w", err)
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		fmt.Fprintf(v.Err, "Request Body: %s\n", body)
	}
	response, err := v.next.RoundTrip(request)
	took := v.clock.Since(began).Milliseconds()
	if err != nil {
		if v.verbosity >= showRequests {
			fmt.Fprintf(v.Err, "%s %s failed in %d milliseconds: %v\n", request.Method, request.URL, took, err)
		}
		return nil, err
	}
	if v.verbosity >= showRequests {
		fmt.Fprintf(v.Err, "%s %s %s in %d milliseconds\n", request.Method, request.URL, response.Status, took)
	}
	v.showWarnings(response)
	return response, nil
}

// showWarnings reads Warning headers (`299 agent "text"`), each text once.
func (v *visible) showWarnings(response *http.Response) {
	for _, header := range response.Header.Values("Warning") {
		start := strings.IndexByte(header, '"')
		if start < 0 {
			continue
		}
		quoted, err := strconv.QuotedPrefix(header[start:])
		if err != nil {
			continue
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || v.warned[text] {
			continue
		}
		v.warned[text] = true
		v.warn("%s", text)
	}
}
