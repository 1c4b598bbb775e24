package source

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/httpget"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// HTTP reads static pods from a URL.
type HTTP struct {
	URL      string
	Header   http.Header
	NodeName string
	Period   time.Duration
	Clock    clock.Clock
	Logger   *zap.Logger
	Client   *http.Client // of NewClient
}

// NewClient returns a client for manifests, which gives up on a server after timeout.
func NewClient(timeout time.Duration) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = rest.MaxAnswerHeaders
	return &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: withoutHeaders}
}

// withoutHeaders is a http.Client's CheckRedirect that sends no headers to other hosts, or
// without TLS what was to be sent with it: they are credentials for the server that the
// user named. Of some, and of other hosts, net/http knows that.
func withoutHeaders(request *http.Request, via []*http.Request) error {
	named := via[0].URL
	if request.URL.Host != named.Host || named.Scheme == "https" && request.URL.Scheme != named.Scheme {
		request.Header = http.Header{}
	}
	return httpget.EnoughRedirects(via)
}

// Run gives the URL's pods to the mux once a period until ctx ends. While the
// URL does not answer, or answers with nonsense, its pods stay as they were. An
// answer without any content is one without pods, as for upstream.
func (h *HTTP) Run(ctx context.Context, mux *Mux) error {
	var last []byte
	failing := ""
	for {
		data, pods, err := h.read(ctx, last)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && failing != err.Error():
			h.Logger.Warn("manifest URL cannot be read", zap.String("url", h.URL), zap.Error(err))
			failing = err.Error()
		case err == nil:
			failing = ""
			if last == nil || !bytes.Equal(data, last) {
				mux.Set(ctx, core.HTTPSource, pods)
			}
			last = data
		}
		if err := backoff.Sleep(ctx, h.Clock, h.Period); err != nil {
			return err
		}
	}
}

func (h *HTTP) read(ctx context.Context, last []byte) ([]byte, []*core.Pod, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("get %s: %w", h.URL, err)
	}
	request.Header = h.Header.Clone()
	response, err := h.Client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("get %s: %w", h.URL, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("get %s: %d %s", h.URL, response.StatusCode, http.StatusText(response.StatusCode))
	}
	data, err := readManifest(response.Body)
	if err != nil {
		return nil, nil, err
	}
	if last != nil && bytes.Equal(data, last) {
		return data, nil, nil
	}
	if len(data) == 0 {
		h.Logger.Warn("the manifest URL returned an empty body, which is treated as no pods", zap.String("url", h.URL))
		return data, nil, nil
	}
	pods, err := podsOf(data, origin{source: core.HTTPSource, location: h.URL, nodeName: h.NodeName})
	if err != nil {
		return nil, nil, err
	}
	if hasUnread(data) {
		h.Logger.Warn(unread, zap.String("url", h.URL))
	}
	return data, pods, nil
}
