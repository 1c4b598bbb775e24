package request

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
)

// namespaceParts may follow a namespace's name and are subresources of the
// namespace itself rather than resources in it.
var namespaceParts = []string{"status", "finalize"}

// Parse determines what a request asks for from its method and URL. It never
// fails: what does not look like a resource is a plain path.
func Parse(r *http.Request) *Info {
	info := &Info{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	parts := split(r.URL.Path)
	if len(parts) < 3 {
		return info
	}
	switch parts[0] {
	case "api":
		info.APIPrefix, info.APIVersion, parts = "api", parts[1], parts[2:]
	case "apis":
		if len(parts) < 4 {
			return info
		}
		info.APIPrefix, info.APIGroup, info.APIVersion, parts = "apis", parts[1], parts[2], parts[3:]
	default:
		return info
	}
	info.Resource = true
	info.Verb = verbOf(r.Method)
	// The verb as a path prefix is deprecated but still in use.
	if parts[0] == "watch" || parts[0] == "proxy" {
		if len(parts) < 2 {
			info.Resource = false
			return info
		}
		info.Verb, info.Prefix, parts = parts[0], parts[0], parts[1:]
	}
	info.place(parts)
	info.collection(r)
	return info
}

func split(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// place reads namespace, resource, name and subresource.
func (i *Info) place(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		if len(parts) > 2 && !slices.Contains(namespaceParts, parts[2]) {
			parts = parts[2:]
		}
	}
	i.Parts = parts
	i.ResourceName = parts[0]
	if len(parts) > 1 {
		i.Name = parts[1]
	}
	if len(parts) > 2 {
		i.Subresource = parts[2]
	}
}

// collection determines the verbs for collections. If the path contains the verb,
// authorization ignores selectors, as in upstream.
func (i *Info) collection(r *http.Request) {
	if i.Name != "" || i.Prefix != "" {
		return
	}
	query := r.URL.Query()
	switch i.Verb {
	case "get":
		i.Verb = "list"
		if Flag(query, "watch") {
			i.Verb = "watch"
		}
		i.selectors(query)
		i.only()
	case "delete":
		i.Verb = "deletecollection"
		i.selectors(query)
	}
}

// selectors keeps the selectors.
func (i *Info) selectors(query url.Values) {
	i.LabelSelector = query.Get("labelSelector")
	text := query.Get("fieldSelector")
	if text == "" {
		return
	}
	if selector, err := fields.ParseSelector(text); err == nil { // the list itself reports errors
		i.Fields = selector
	}
}

// only uses a selected single name as the request's name, so that a rule for
// one object allows listing and watching just it. It does not apply to
// deletecollection.
func (i *Info) only() {
	if i.Fields == nil {
		return
	}
	if name, ok := i.Fields.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(name)) == 0 {
		i.Name = name
	}
}

// Flag reads a boolean parameter in the traditional way: it is true if present,
// unless its value is "false" or "0".
func Flag(query url.Values, name string) bool {
	values := query[name]
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// Number reads a number; nil if the parameter is missing. An empty one is no number.
func Number(query url.Values, name string) (*int64, error) {
	if !query.Has(name) {
		return nil, nil
	}
	n, err := strconv.ParseInt(query.Get(name), 10, 64)
	return &n, err
}

// LongRunning reports whether the request may stay open as long as its client
// likes: watches and streams.
func (i *Info) LongRunning() bool {
	if i.Verb == "watch" || i.Verb == "proxy" {
		return true
	}
	switch i.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return i.Resource
	}
	return false
}

// Mutating reports whether the request may change something.
func (i *Info) Mutating() bool {
	switch i.Verb {
	case "get", "list", "watch", "head", "options":
		return false
	}
	return true
}
