package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	plainType      = "application/json"
	yamlType       = "application/yaml"
	aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// document is an encoded answer.
type document struct {
	body        []byte
	etag        string
	contentType string
}

func encode(v any, contentType string) (*document, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode discovery document: %w", err)
	}
	sum := sha256.Sum256(body)
	return &document{body: append(body, '\n'), etag: `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`, contentType: contentType}, nil
}

// More is what is served beside what the server itself always serves.
type More struct {
	// Resources are custom resources.
	Resources []Resource
	// Remote are the groups and versions of other servers.
	Remote []Remote
	// Priorities of groups and versions, where they are not the usual.
	Priorities map[string]Priority // by "group/version"
}

// Source tells what more there is. Changed is compared; while it is the same,
// so is what More answers.
type Source interface {
	Changed() any
	More() More
}

// Catalog answers with discovery documents.
type Catalog struct {
	own     []Resource
	source  Source
	address string

	mu      sync.Mutex
	changed any
	made    *documents
}

// documents are all answers of one time.
type documents struct {
	plain, together map[string]*document // by path; together for /api and /apis only
}

// New returns a catalog of the server's own resources and of what source, which
// may be nil, tells of. address is what clients are told to reach the server by.
func New(own []Resource, source Source, address string) *Catalog {
	return &Catalog{own: own, source: source, address: address}
}

// Install serves the documents of the server's own resources.
func (c *Catalog) Install(router gin.IRoutes) error {
	made, err := c.documents()
	if err != nil {
		return err
	}
	for _, path := range made.paths() {
		answer := func(g *gin.Context) { c.Serve(g, path) }
		router.GET(path, answer)
		router.GET(path+"/", answer)
	}
	return nil
}

func (d *documents) paths() []string {
	var out []string
	for path := range d.plain {
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// Paths are where there are documents now, sorted.
func (c *Catalog) Paths() []string {
	made, err := c.documents()
	if err != nil {
		return nil
	}
	return made.paths()
}

// Serve answers with the document at path. It reports false, and answers
// nothing, where there is none.
func (c *Catalog) Serve(g *gin.Context, path string) bool {
	made, err := c.documents()
	if err != nil {
		return false
	}
	d := made.plain[strings.TrimSuffix(path, "/")]
	if d == nil {
		return false
	}
	if together := made.together[strings.TrimSuffix(path, "/")]; together != nil && wantsAggregated(g.Request.Header.Values("Accept")) {
		d = together
	}
	if d.contentType == plainType && prefersYAML(g.Request.Header.Values("Accept")) {
		if d, err = d.asYAML(); err != nil {
			return false
		}
	}
	d.write(g)
	return true
}

// asYAML is made for each who asks: few do.
func (d *document) asYAML() (*document, error) {
	body, err := yaml.JSONToYAML(d.body)
	if err != nil {
		return nil, fmt.Errorf("encode discovery document: %w", err)
	}
	return &document{body: body, etag: strings.TrimSuffix(d.etag, `"`) + `-YAML"`, contentType: yamlType}, nil
}

// prefersYAML: the first media type that we can answer with decides.
func prefersYAML(accept []string) bool {
	for mediaType := range mediaTypes(accept) {
		switch mediaType {
		case yamlType:
			return true
		case plainType, "*/*", "application/*":
			return false
		}
	}
	return false
}

func (d *document) write(g *gin.Context) {
	header := g.Writer.Header()
	header.Set("Vary", "Accept")
	header.Set("ETag", d.etag)
	header.Set("Cache-Control", "public")
	if slices.Contains(g.Request.Header.Values("If-None-Match"), d.etag) {
		g.Status(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", d.contentType)
	g.Writer.WriteHeader(http.StatusOK)
	_, _ = g.Writer.Write(d.body) // a client that is gone needs no answer
}

// documents are the present ones, made anew where something changed.
func (c *Catalog) documents() (*documents, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changed any
	if c.source != nil {
		changed = c.source.Changed()
	}
	if c.made != nil && c.changed == changed {
		return c.made, nil
	}
	var more More
	if c.source != nil {
		more = c.source.More()
	}
	made, err := c.make(more)
	if err != nil {
		return nil, err
	}
	c.made, c.changed = made, changed
	return made, nil
}

func (c *Catalog) make(more More) (*documents, error) {
	all := collect(c.own, more)
	out := &documents{plain: map[string]*document{}, together: map[string]*document{}}
	var failed error
	add := func(path string, v any) {
		d, err := encode(v, plainType)
		out.plain[path], failed = d, firstOf(failed, err)
	}
	groups := groupList(all)
	add("/api", &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: coreVersions(all),
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: c.address}},
	})
	add("/apis", groups)
	for path, core := range map[string]bool{"/api": true, "/apis": false} {
		d, err := encode(aggregated(all, core), aggregatedType)
		out.together[path], failed = d, firstOf(failed, err)
	}
	for i := range groups.Groups {
		group := groups.Groups[i]
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		add("/apis/"+group.Name, &group)
	}
	for _, gv := range all {
		switch {
		case gv.remote != nil: // its own server tells
		case gv.Group == "":
			add("/api/"+gv.Version, resourceList(gv))
		default:
			add("/apis/"+gv.String(), resourceList(gv))
		}
	}
	return out, failed
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func coreVersions(all []groupVersion) []string {
	var versions []string
	for _, gv := range all {
		if gv.Group == "" {
			versions = append(versions, gv.Version)
		}
	}
	return versions
}

// wantsAggregated: the first media type that we can answer with decides.
func wantsAggregated(accept []string) bool {
	for mediaType, parameters := range mediaTypes(accept) {
		switch {
		case mediaType != plainType && mediaType != "*/*" && mediaType != "application/*":
		case parameters["as"] == "":
			return false
		case parameters["g"] == "apidiscovery.k8s.io" && parameters["v"] == "v2" && parameters["as"] == "APIGroupDiscoveryList":
			return true
		}
	}
	return false
}

// mediaTypes are those of an Accept header, with their parameters, in the
// header's order. What is none is passed over.
func mediaTypes(accept []string) iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for _, header := range accept {
			for part := range strings.SplitSeq(header, ",") {
				mediaType, parameters, err := mime.ParseMediaType(strings.TrimSpace(part))
				if err == nil && !yield(mediaType, parameters) {
					return
				}
			}
		}
	}
}
