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

// openAPIUser is the user as which the server reads OpenAPI documents.
var openAPIUser = http.Header{"X-Remote-User": {"system:aggregator"}}

// description is another server's OpenAPI of a group and version.
type description struct {
	v3Path, v3ETag string
	v2             []byte
	v2ETag         string
}

// DescriptionsChanged is a number that changes with the results of Descriptions.
func (a *Aggregator) DescriptionsChanged() int64 { return a.descriptionChanges.Load() }

// Descriptions are the other servers' last OpenAPI documents.
func (a *Aggregator) Descriptions() []openapi.Remote {
	var out []openapi.Remote
	for gv, r := range *a.remotes.Load() {
		r.mu.Lock()
		d := r.documents.description
		r.mu.Unlock()
		out = append(out, openapi.Remote{GroupVersion: gv, V3Path: d.v3Path, V2: d.v2})
	}
	slices.SortFunc(out, func(a, b openapi.Remote) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version))
	})
	return out
}

// readDescription reads a server's OpenAPI. What it does not send this time
// stays as it was.
func (a *Aggregator) readDescription(ctx context.Context, r *remote) {
	r.mu.Lock()
	before := r.documents.description
	r.mu.Unlock()
	now := before
	third := func(body []byte) (err error) { now.v3Path, err = openapi.Locate(body, r.GroupVersion); return err }
	second := func(body []byte) (err error) { now.v2, err = openapi.Extract(body, r.GroupVersion); return err }
	now.v3ETag = a.readDocument(ctx, r, "/openapi/v3", before.v3ETag, third)
	now.v2ETag = a.readDocument(ctx, r, "/openapi/v2", before.v2ETag, second)
	r.mu.Lock()
	r.documents.description = now
	r.mu.Unlock()
	if now.v3Path != before.v3Path || !bytes.Equal(now.v2, before.v2) {
		a.descriptionChanges.Add(1)
	}
}

// readDocument passes a document to take if it differs from that of etag, and
// returns the etag of the one taken last.
func (a *Aggregator) readDocument(ctx context.Context, r *remote, path, etag string, take func(body []byte) error) string {
	response, body, err := a.send(ctx, r, remoteRequest{path: path, accept: "application/json", etag: etag, user: openAPIUser})
	switch {
	case response != nil && response.StatusCode == http.StatusNotFound:
		return "" // it has none, which is fine
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
