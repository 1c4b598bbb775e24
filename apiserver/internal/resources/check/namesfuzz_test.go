package check

import (
	"net/http"
	"net/url"
	"testing"

	"kctl/apiserver/internal/request"
)

// FuzzNames: an object with a valid name is found under it, and its path means
// nothing else.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "a.b-c", "system:node:x", "A_b", "..", ".", "a/b", "a%2fb", "a/../b", "", "a?watch=1", "a#b", "ä", "a\x00b", "a b", "a;b",
		"\\", "a\n"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" { // refused before its characters are checked
			return
		}
		for kind, invalid := range map[string]func(string, bool) []string{"segment": NameIsSegment, "subdomain": NameIsSubdomain, "label": NameIsLabel} {
			if len(invalid(name, false)) > 0 {
				continue
			}
			path := "/api/v1/namespaces/n/things/" + url.PathEscape(name)
			read, err := http.NewRequest(http.MethodGet, "https://server"+path, nil)
			if err != nil {
				t.Errorf("%s %q is taken, and no client can ask for %q: %v", kind, name, path, err)
				continue
			}
			if info := request.Parse(read); info.Name != name || info.Namespace != "n" || info.ResourceName != "things" || info.Subresource != "" || info.Verb != "get" {
				t.Errorf("%s %q is taken, and %q is about %+v", kind, name, path, info)
			}
		}
	})
}
