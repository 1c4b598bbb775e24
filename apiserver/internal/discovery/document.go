package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/negotiation"
)

// aggregatedParams is the media type of the aggregated document.
const aggregatedParams = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// document is an encoded answer, in JSON; other forms are made on each request,
// since few ask for them.
type document struct {
	body []byte
	etag string
	// empty is what the document decodes into.
	empty runtime.Object
	// ignoresWildcard documents do not match "application/*", like those of upstream that
	// its router serves.
	ignoresWildcard bool
}

func encode(v runtime.Object) (*document, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode discovery document: %w", err)
	}
	sum := sha256.Sum256(body)
	return &document{
		body: append(body, '\n'), etag: strings.ToUpper(hex.EncodeToString(sum[:])),
		empty: reflect.New(reflect.TypeOf(v).Elem()).Interface().(runtime.Object),
	}, nil
}

// answer writes the document in a form that r accepts, or all, the aggregated
// one of the same path, if r names that. The error is a 406.
func (d *document) answer(w http.ResponseWriter, r *http.Request, all *document) error {
	clauses := negotiation.Clauses(r)
	if all != nil {
		for _, clause := range clauses {
			p := clause.Params
			if media, ok := clause.Form(); ok && p["as"] == "APIGroupDiscoveryList" && p["g"] == "apidiscovery.k8s.io" && p["v"] == "v2" {
				return all.write(w, r, media, aggregatedParams, negotiation.Pretty(r, clause))
			}
		}
	}
	if strings.Join(r.Header.Values("Accept"), "") == "" {
		return d.write(w, r, runtime.ContentTypeJSON, "", negotiation.Pretty(r, negotiation.Clause{}))
	}
	if d.ignoresWildcard {
		if err := negotiation.RequireOneOf(r, negotiation.Forms...); err != nil {
			return err
		}
	}
	for _, clause := range clauses {
		if media, ok := clause.Form(); ok && clause.Plain() {
			return d.write(w, r, media, "", negotiation.Pretty(r, clause))
		}
	}
	return negotiation.NoneAcceptable(negotiation.Forms...)
}

func (d *document) write(w http.ResponseWriter, r *http.Request, media, as string, pretty bool) error {
	body, form, err := d.encodeAs(media, pretty)
	if err != nil {
		return err
	}
	header, etag := w.Header(), strconv.Quote(d.etag+form)
	header.Set("Vary", "Accept")
	header.Set("ETag", etag)
	if as != "" { // one for all who ask; what is plain is asked for anew, by its ETag
		header.Set("Cache-Control", "public")
	}
	if slices.Contains(r.Header.Values("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header.Set("Content-Type", media+as)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // a client that is gone needs no answer
	return nil
}

// encodeAs returns the document in a form, and its ETag's suffix.
func (d *document) encodeAs(media string, pretty bool) ([]byte, string, error) {
	var out bytes.Buffer
	var err error
	switch {
	case media == runtime.ContentTypeYAML:
		body, err := yaml.JSONToYAML(d.body)
		return body, "-YAML", err
	case media == runtime.ContentTypeProtobuf:
		v := d.empty.DeepCopyObject()
		if err = json.Unmarshal(d.body, v); err == nil {
			err = protobuf.NewSerializer(nil, nil).Encode(v, &out)
		}
		return out.Bytes(), "-PROTOBUF", err
	case pretty:
		err = json.Indent(&out, bytes.TrimSpace(d.body), "", "  ")
		return out.Bytes(), "-PRETTY", err
	}
	return d.body, "", nil
}
