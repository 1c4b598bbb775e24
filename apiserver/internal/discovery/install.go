package discovery

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/status"
)

// More is what is served besides the server's own resources.
type More struct {
	// Resources are custom resources.
	Resources []Resource
	// Remote are the groups and versions of other servers.
	Remote []Remote
	// Priorities of groups and versions, unless they are the default.
	Priorities map[string]Priority // by "group/version"
}

// Source provides more resources. As long as Changed returns the same value, so
// does More.
type Source interface {
	Changed() any
	More() More
}

// Catalog answers with discovery documents. It is safe for concurrent use.
type Catalog struct {
	own     []Resource
	source  Source
	address string

	mu      sync.Mutex
	changed any
	cached  *documents
}

// documents are all answers of one time.
type documents struct {
	plain, aggregated map[string]*document // by path; together for /api and /apis only
}

// New returns a catalog of the server's own resources and those of source, which
// may be nil. address is where clients are told to reach the server.
func New(own []Resource, source Source, address string) *Catalog {
	return &Catalog{own: own, source: source, address: address}
}

// anyMethod gets the list of groups, and a group: upstream does not look at the method.
var anyMethod = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions}

// Install serves the documents of the server's own resources.
func (c *Catalog) Install(router gin.IRoutes) error {
	made, err := c.current()
	if err != nil {
		return err
	}
	for _, path := range made.paths() {
		answer := func(g *gin.Context) { c.Serve(g, path) }
		methods := []string{http.MethodGet}
		if path == "/apis" || strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") == 2 {
			methods = anyMethod
		}
		router.Match(methods, path, answer)
		router.Match(methods, path+"/", answer)
	}
	return nil
}

func (d *documents) paths() []string {
	return slices.Sorted(maps.Keys(d.plain))
}

// Paths are the paths of the present documents, sorted.
func (c *Catalog) Paths() []string {
	made, err := c.current()
	if err != nil {
		return nil
	}
	return made.paths()
}

// Serve answers with the document at path. It reports false, and answers
// nothing, if there is none.
func (c *Catalog) Serve(g *gin.Context, path string) bool {
	made, err := c.current()
	if err != nil {
		return false
	}
	path = strings.TrimSuffix(path, "/")
	d := made.plain[path]
	if d == nil {
		return false
	}
	if err := d.answer(g.Writer, g.Request, made.aggregated[path]); err != nil {
		status.Write(g.Writer, g.Request, err)
	}
	return true
}

// current are the present ones, made again if something has changed.
func (c *Catalog) current() (*documents, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changed any
	if c.source != nil {
		changed = c.source.Changed()
	}
	if c.cached != nil && c.changed == changed {
		return c.cached, nil
	}
	var more More
	if c.source != nil {
		more = c.source.More()
	}
	made, err := c.build(more)
	if err != nil {
		return nil, err
	}
	c.cached, c.changed = made, changed
	return made, nil
}

func (c *Catalog) build(more More) (*documents, error) {
	all := collect(c.own, more)
	out := &documents{plain: map[string]*document{}, aggregated: map[string]*document{}}
	var failed error
	add := func(path string, v runtime.Object, narrow bool) {
		d, err := encode(v)
		if d != nil {
			d.ignoresWildcard = narrow
		}
		out.plain[path], failed = d, firstOf(failed, err)
	}
	groups := groupList(all)
	add("/api", &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: coreVersions(all),
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: c.address}},
	}, true)
	add("/apis", groups, false)
	for path, core := range map[string]bool{"/api": true, "/apis": false} {
		d, err := encode(aggregatedList(all, core))
		out.aggregated[path], failed = d, firstOf(failed, err)
	}
	for i := range groups.Groups {
		group := groups.Groups[i]
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		add("/apis/"+group.Name, &group, false)
	}
	for _, gv := range all {
		switch {
		case gv.remote != nil: // its own server tells
		case gv.Group == "":
			add("/api/"+gv.Version, resourceList(gv), true)
		default:
			add("/apis/"+gv.String(), resourceList(gv), gv.own)
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
