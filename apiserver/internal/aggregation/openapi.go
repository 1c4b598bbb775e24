package aggregation

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"kctl/apiserver/internal/openapi"
)

// reader is the name under which the server asks for descriptions.
var reader = http.Header{"X-Remote-User": {"system:aggregator"}}

// description is what another server said in OpenAPI of a group and version.
type description struct {
	third, thirdETag string
	second           []byte
	secondETag       string
}

// DescriptionsChanged is a number that changes with what Descriptions answers.
func (a *Aggregator) DescriptionsChanged() int64 { return a.described.Load() }

// Descriptions are what other servers said last in OpenAPI.
func (a *Aggregator) Descriptions() []openapi.Remote {
	var out []openapi.Remote
	for gv, r := range *a.remotes.Load() {
		r.mu.Lock()
		d := r.known.description
		r.mu.Unlock()
		out = append(out, openapi.Remote{GroupVersion: gv, Third: d.third, Second: d.second})
	}
	slices.SortFunc(out, func(a, b openapi.Remote) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version))
	})
	return out
}

// readDescription finds out how a server describes itself now. What it does not
// say this time is what it said before.
func (a *Aggregator) readDescription(ctx context.Context, r *remote) {
	r.mu.Lock()
	before := r.known.description
	r.mu.Unlock()
	now := before
	third := func(body []byte) (err error) { now.third, err = openapi.Locate(body, r.GroupVersion); return err }
	second := func(body []byte) (err error) { now.second, err = openapi.Extract(body, r.GroupVersion); return err }
	now.thirdETag = a.readDocument(ctx, r, "/openapi/v3", before.thirdETag, third)
	now.secondETag = a.readDocument(ctx, r, "/openapi/v2", before.secondETag, second)
	r.mu.Lock()
	r.known.description = now
	r.mu.Unlock()
	if now.third != before.third || !bytes.Equal(now.second, before.second) {
		a.described.Add(1)
	}
}

// readDocument hands a document to take, where it is another than that of etag,
// and returns the etag of the one that was taken last.
func (a *Aggregator) readDocument(ctx context.Context, r *remote, path, etag string, take func(body []byte) error) string {
	response, body, err := a.send(ctx, r, question{path: path, accept: "application/json", etag: etag, as: reader})
	switch {
	case response != nil && response.StatusCode == http.StatusNotFound:
		return "" // it has none, which is its right
	case err == nil && body == nil:
		return etag
	case err == nil:
		err = take(body)
	}
	if err != nil {
		if ctx.Err() == nil {
			a.logger.Warn("another server does not describe itself", zap.String("apiservice", r.name), zap.String("path", path), zap.Error(err))
		}
		return etag
	}
	return response.Header.Get("ETag")
}
