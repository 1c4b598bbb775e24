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
	response, err := o.aggregator.open(ctx, o.remote, question{
		path: o.path(namespace, "") + "?" + query.Encode(), accept: metadataOnly, as: checker,
	})
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		reason, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		return nil, o.refused(response, reason, "", fmt.Errorf("bad status from %s: %d", response.Request.URL, response.StatusCode))
	}
	return watcher{response.Body}, nil
}

// frame is an event as it is sent.
type frame struct {
	Type   string                        `json:"type"`
	Object *metav1.PartialObjectMetadata `json:"object"`
}

// Events implements registry.Watcher: it ends after the last event, or at an
// invalid one.
func (w watcher) Events() iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		defer w.body.Close()
		bounded := &bounded{reader: w.body}
		decoder := json.NewDecoder(bounded)
		for {
			bounded.left = maxDocument
			var f frame
			if decoder.Decode(&f) != nil || f.Object == nil {
				return
			}
			if !yield(registry.WatchEvent{Type: f.Type, Object: registry.Encoded{Object: f.Object}}, false) {
				return
			}
		}
	}
}

// bounded reads up to a limit, which can be renewed.
type bounded struct {
	reader io.Reader
	left   int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrShortBuffer
	}
	n, err := b.reader.Read(p[:min(len(p), b.left)])
	b.left -= n
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
