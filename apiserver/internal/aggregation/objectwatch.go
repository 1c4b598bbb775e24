package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
)

// watcher is a watch of another server.
type watcher struct{ body io.ReadCloser }

// Watch implements registry.Objects, without selectors. The watch ends with ctx
// and with the answer; the caller reads it until then, or ends ctx.
func (o *objects) Watch(ctx context.Context, namespace string, options registry.ListOptions) (registry.Watcher, error) {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {options.ResourceVersion}}
	response, err := o.aggregator.open(ctx, o.remote, remoteRequest{
		path: o.path(namespace, "") + "?" + query.Encode(), accept: metadataOnly, user: aggregatorUser,
	})
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		reason, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		return nil, refusalError(response, reason, "", fmt.Errorf("bad status from %s: %d", response.Request.URL, response.StatusCode))
	}
	return watcher{response.Body}, nil
}

// watchFrame is an event as it is sent.
type watchFrame struct {
	Type   string                        `json:"type"`
	Object *metav1.PartialObjectMetadata `json:"object"`
}

// Events implements registry.Watcher: it ends after the last event, or at an
// invalid one.
func (w watcher) Events() iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		defer w.body.Close()
		bounded := &renewableLimitReader{reader: w.body}
		decoder := json.NewDecoder(bounded)
		for {
			bounded.remaining = maxDocument
			var f watchFrame
			if decoder.Decode(&f) != nil || f.Object == nil {
				return
			}
			if !yield(registry.WatchEvent{Type: f.Type, Object: registry.Encoded{Object: f.Object}}, false) {
				return
			}
		}
	}
}

// renewableLimitReader reads up to a limit, which can be renewed.
type renewableLimitReader struct {
	reader    io.Reader
	remaining int
}

func (b *renewableLimitReader) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, io.ErrShortBuffer
	}
	n, err := b.reader.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	return n, err
}

// untilAvailable waits until a server is available.
func (a *Aggregator) untilAvailable(ctx context.Context, r *remote) error {
	changed, forget := a.subscribe()
	defer forget()
	for !r.available.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
	return nil
}
