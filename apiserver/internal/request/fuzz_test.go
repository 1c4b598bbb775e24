package request

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzParse: whatever the path, what is parsed from it is a part of it, and a
// verb for several objects has no name but that in a field selector.
func FuzzParse(f *testing.F) {
	for _, path := range []string{
		"/api/v1/namespaces/default/pods/web/log", "/apis/apps/v1/deployments", "/api/v1/watch/namespaces/x/pods", "/api/v1/proxy/nodes/n",
		"/api/v1/namespaces/x/status", "//api//v1//pods", "/api/v1/namespaces//pods", "/apis/a/b/../c/d", "/api/v1/pods/%2e%2e/x", "/healthz", "/", "",
	} {
		for _, query := range []string{"", "watch=true", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%3Da/b", "watch&fieldSelector=%3D%3D"} {
			f.Add(http.MethodGet, path, query)
		}
		f.Add(http.MethodDelete, path, "")
		f.Add("", path, "")
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		info := Parse(&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}})
		if info.Path != path {
			t.Errorf("path %q is read as %q", path, info.Path)
		}
		if !info.Resource {
			if info.Name+info.ResourceName+info.Namespace+info.Subresource != "" {
				t.Errorf("a plain path %q has %+v", path, info)
			}
			return
		}
		if !strings.HasSuffix(strings.Trim(path, "/"), strings.Join(info.Parts, "/")) {
			t.Errorf("%q ends in %q", path, info.Parts)
		}
		switch info.Verb {
		case "list", "deletecollection":
			if len(info.Parts) > 1 && info.Parts[1] != "" {
				t.Errorf("%s %q is about %q", info.Verb, path, info.Parts[1])
			}
		}
		if strings.Contains(info.Name, "/") || strings.Contains(info.Namespace, "/") {
			t.Errorf("%q: %+v", path, info)
		}
	})
}
