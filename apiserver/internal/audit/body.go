package audit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/scheme"
)

const (
	// maxBody bounds the kept bodies. Larger ones are left out: half an object is
	// useless.
	maxBody = 16 << 20
	// maxUserAgent is upstream's; longer ones are cut and marked.
	maxUserAgent = 1024
)

// Body collects the bytes of an answer.
type Body struct {
	ContentType string
	Coding      string // Content-Encoding
	bytes       bytes.Buffer
	tooLarge    bool
}

// StatusBody is an answer that is a Status.
func StatusBody(status metav1.Status) *Body {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body := &Body{ContentType: runtime.ContentTypeJSON}
	_ = json.NewEncoder(body).Encode(status) // made of strings, into memory
	return body
}

// Write implements io.Writer; it never fails.
func (b *Body) Write(p []byte) (int, error) {
	if b.tooLarge || b.bytes.Len()+len(p) > maxBody {
		b.tooLarge, b.bytes = true, bytes.Buffer{}
		return len(p), nil
	}
	return b.bytes.Write(p)
}

// Bytes are what was collected.
func (b *Body) Bytes() []byte { return b.bytes.Bytes() }

// plain returns the body without compression. It decompresses no more than is
// kept.
func (b *Body) plain() ([]byte, error) {
	if b.Coding != "gzip" {
		return b.bytes.Bytes(), nil
	}
	packed, err := gzip.NewReader(bytes.NewReader(b.bytes.Bytes()))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxBody+1))
	if len(text) > maxBody {
		return nil, errTooLarge
	}
	return text, err
}

var errTooLarge = errors.New("the body is too large to be kept")

// JSON is the object in the body as JSON; nil if there is no readable one.
func (b *Body) JSON(omitManagedFields bool) json.RawMessage {
	if b == nil || b.tooLarge || b.bytes.Len() == 0 {
		return nil
	}
	text, err := b.plain()
	if err != nil {
		return nil
	}
	media, _, err := mime.ParseMediaType(b.ContentType)
	switch {
	case err == nil && media == runtime.ContentTypeProtobuf:
		if bodylimit.Protobuf(text, schema.GroupVersionKind{}) != nil {
			return nil
		}
		object, gvk, err := scheme.Protobuf.Decode(text, nil, nil)
		if err != nil {
			return nil
		}
		object.GetObjectKind().SetGroupVersionKind(*gvk)
		if text, err = scheme.Encode(object); err != nil {
			return nil
		}
	case err == nil && strings.HasSuffix(media, "yaml"):
		if text, err = bodylimit.YAMLToJSON(text, maxBody); err != nil {
			return nil
		}
	}
	if omitManagedFields {
		text = withoutManagedFields(text)
	}
	var compact bytes.Buffer // an event is one line
	if json.Compact(&compact, text) != nil {
		return nil
	}
	return compact.Bytes()
}

// withoutManagedFields drops metadata.managedFields of an object, or of each
// object of a list.
func withoutManagedFields(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"managedFields"`)) {
		return text
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return text
	}
	drop := func(object any) {
		if fields, ok := object.(map[string]any); ok {
			if meta, ok := fields["metadata"].(map[string]any); ok {
				delete(meta, "managedFields")
			}
		}
	}
	drop(object)
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			drop(item)
		}
	}
	out, err := json.Marshal(object)
	if err != nil {
		return text
	}
	return out
}

// sourceIPs are the addresses a request came from: those in proxies' headers, then the
// peer's.
func sourceIPs(r *http.Request) []string {
	var ips []string
	add := func(text string) {
		if ip := net.ParseIP(strings.TrimSpace(text)); ip != nil {
			ips = append(ips, ip.String())
		}
	}
	for text := range strings.SplitSeq(r.Header.Get("X-Forwarded-For"), ",") {
		add(text)
	}
	if real := r.Header.Get("X-Real-Ip"); real != "" && !slices.Contains(ips, real) {
		add(real)
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && (len(ips) == 0 || ips[len(ips)-1] != host) {
		add(host)
	}
	return ips
}

func userAgent(r *http.Request) string {
	agent := r.UserAgent()
	if len(agent) > maxUserAgent {
		return strings.ToValidUTF8(agent[:maxUserAgent], "") + "...TRUNCATED"
	}
	return agent
}
