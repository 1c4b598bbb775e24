package aggregation

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
)

// aggregatorUser is the user as which the server makes its own requests.
var aggregatorUser = http.Header{"X-Remote-User": {"system:kube-aggregator"}, "X-Remote-Group": {"system:masters"}}

// maxRefusal bounds how much of a refusal's body is read.
const maxRefusal = 64 << 10

// remoteRequest is a request that the server makes for itself.
type remoteRequest struct {
	method, path string // "" for GET
	accept, etag string
	body         []byte
	media        string // of the body
	user         http.Header
	timeout      time.Duration // 0 for readTimeout
}

// send sends the request and reads the answer, whose body is nil if what q.etag
// names has not changed. For a refusal, it also returns an error.
func (a *Aggregator) send(ctx context.Context, r *remote, q remoteRequest) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(q.timeout, readTimeout))
	defer cancel()
	response, err := a.open(ctx, r, q)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified && q.etag != "" {
		return response, nil, nil
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		return response, reason, fmt.Errorf("bad status from %s: %d", response.Request.URL, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("%s is larger than %d bytes", response.Request.URL, maxDocument)
	}
	return response, body, err
}

// open sends the request, and leaves the answer for the caller to read.
func (a *Aggregator) open(ctx context.Context, r *remote, q remoteRequest) (*http.Response, error) {
	if r.configError != nil {
		return nil, r.configError
	}
	host, err := a.resolve(ctx, r.service)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, q.method, "https://"+host+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, q.user)
	for name, value := range map[string]string{"Accept": q.accept, "If-None-Match": q.etag, "Content-Type": q.media} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	client := http.Client{
		Transport:     r.requestTransport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client.Do(request)
}
