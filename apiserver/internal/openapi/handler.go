package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/negotiation"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

const (
	jsonType = "application/json"
	// Clients ask for the first one, which is not a proper media type; answers
	// have the second.
	protobufTypeV2       = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	protobufTypeV2Proper = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	protobufTypeV3       = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	protobufTypeV3Proper = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	// discoveryPath is where v3 documents are listed.
	discoveryPath = "/openapi/v3"
)

// Handler answers under /openapi/. It is safe for concurrent use.
type Handler struct {
	entries []registry.Served
	created []core.Resource
	source  Source
	release string
	started time.Time

	mu sync.Mutex
	// builtinGroups are the documents of what the server itself serves, made once.
	builtinGroups map[string]answer
	// customGroups are the documents of custom resources.
	customGroups map[string]customGroup
	// protobufGroups are documents of v3 that were requested in protobuf, by the hash of
	// what they were made from.
	protobufGroups map[string]answer
	index          memoized[answer]
	whole          memoized[v2Document]
}

// customGroup is the document of a group with custom resources, and what it was made
// from.
type customGroup struct {
	mark string
	answer
}

// v2Document is the one document of v2, in both forms.
type v2Document struct{ json, protobuf answer }

// memoized is a result, and the state of the source that it was made from.
type memoized[T any] struct {
	value   T
	changed any
	done    bool
}

type answer struct {
	zipped      []byte
	contentType string
	etag        string
}

// New returns a Handler that describes entries, and the resources that can
// only be created. release is the version of the API in the documents
// ("1.37"), started what Last-Modified says.
func New(entries []registry.Served, created []core.Resource, release string, started time.Time) *Handler {
	return &Handler{entries: entries, created: created, release: release, started: started}
}

// Follow makes the handler also describe the custom resources of source. It
// must be called before the first request.
func (h *Handler) Follow(source Source) *Handler {
	h.source = source
	return h
}

// Serve answers GET and HEAD of /openapi/v2, /openapi/v3 and what the latter
// lists, or returns a status error for the caller to write. As upstream's, its 404 and
// 406 have no body.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return apierrors.NewMethodNotSupported(runtimeschema.GroupResource{Resource: "openapi"}, strings.ToLower(r.Method))
	}
	path := r.URL.Path
	if path == "/openapi/v2" {
		return h.serveV2(w, r)
	}
	index, groups, err := h.documentsV3()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if path == discoveryPath {
		return h.write(w, r, index)
	}
	name, found := strings.CutPrefix(path, discoveryPath+"/")
	group, known := groups(name)
	if !found || !known {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	return h.serveGroup(w, r, name, group)
}

// Document returns the v3 document of a group's version in JSON; false if this server itself
// serves none.
func (h *Handler) Document(gv runtimeschema.GroupVersion) (document []byte, ok bool, err error) {
	_, groups, err := h.documentsV3()
	if err != nil {
		return nil, false, err
	}
	group, ok := groups(documentName(gv))
	if !ok {
		return nil, false, nil
	}
	unzipped, err := group.unzip()
	if err != nil {
		return nil, false, err
	}
	document, err = io.ReadAll(unzipped)
	return document, err == nil, err
}

func (h *Handler) serveV2(w http.ResponseWriter, r *http.Request) error {
	all, err := h.documentV2()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	switch acceptedForm(r, protobufTypeV2, protobufTypeV2Proper) {
	case formProtobuf:
		return h.write(w, r, all.protobuf)
	case formJSON:
		return h.write(w, r, all.json)
	}
	w.WriteHeader(http.StatusNotAcceptable)
	return nil
}

// form is the media type of an answer.
type form int

const (
	formNone form = iota
	formJSON
	formProtobuf
)

// acceptedForm is the supported form that the request prefers.
func acceptedForm(r *http.Request, protobuf ...string) form {
	if r.Header.Get("Accept") == "" {
		return formJSON
	}
	for _, clause := range negotiation.Clauses(r) {
		switch {
		case slices.Contains(protobuf, clause.Media):
			return formProtobuf
		case slices.Contains([]string{jsonType, "application/*", "*/*"}, clause.Media):
			return formJSON
		}
	}
	return formNone
}

// serveGroup lets clients that name the document by its hash cache it for ever,
// and redirects those with an old hash to the new one.
func (h *Handler) serveGroup(w http.ResponseWriter, r *http.Request, name string, group answer) error {
	switch acceptedForm(r, protobufTypeV3, protobufTypeV3Proper) {
	case formNone:
		w.WriteHeader(http.StatusNotAcceptable)
		return nil
	case formProtobuf:
		encoded, err := h.encodeProtobuf(group)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		group = encoded
	}
	if asked := r.URL.Query().Get("hash"); asked != "" {
		if asked != group.etag {
			http.Redirect(w, r, groupURL(name, group.etag), http.StatusMovedPermanently)
			return nil
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", h.started.AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	return h.write(w, r, group)
}

func groupURL(name, hash string) string {
	return discoveryPath + "/" + name + "?hash=" + url.QueryEscape(hash)
}

// write sends an answer as it is kept, or decompressed for clients that don't accept
// gzip.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, a answer) error {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("ETag", `"`+a.etag+`"`)
	header.Set("Vary", "Accept, Accept-Encoding")
	header.Set("Last-Modified", h.started.UTC().Format(http.TimeFormat))
	if r.Header.Get("If-None-Match") == `"`+a.etag+`"` {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if negotiation.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodGet {
			_, _ = w.Write(a.zipped) // a client that has gone needs no answer
		}
		return nil
	}
	unzipped, err := a.unzip()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, unzipped)
	}
	return nil
}

// unzip returns the decompressed answer.
func (a *answer) unzip() (io.Reader, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(a.zipped))
	if err != nil {
		return nil, fmt.Errorf("openapi: unpacking: %w", err)
	}
	return unzipped, nil
}

func newJSONAnswer(document map[string]any) (answer, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return answer{}, fmt.Errorf("openapi: encoding: %w", err)
	}
	return newAnswer(data, jsonType)
}

func newAnswer(data []byte, contentType string) (answer, error) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(data); err != nil {
		return answer{}, fmt.Errorf("openapi: compressing: %w", err)
	}
	if err := w.Close(); err != nil {
		return answer{}, fmt.Errorf("openapi: compressing: %w", err)
	}
	sum := sha256.Sum256(data)
	return answer{zipped: bytes.Clone(zipped.Bytes()), contentType: contentType, etag: strings.ToUpper(hex.EncodeToString(sum[:]))}, nil
}
