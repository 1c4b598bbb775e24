package server

import (
	"net/http"
	"path"
	"strings"
)

// withoutSlash removes trailing slashes from paths of the server's own
// resources, as upstream does. Paths that are passed on to other servers keep
// them: there they may mean something.
func (s *Server) withoutSlash(next http.Handler) http.Handler {
	groups := map[string]bool{}
	for _, served := range s.served {
		groups[served.Resource.Info().Resource.Group] = true
	}
	own := func(path string) bool {
		if strings.Contains(path, "/proxy/") {
			return false
		}
		group, ok := strings.CutPrefix(path, "/apis/")
		if !ok {
			return strings.HasPrefix(path, "/api/")
		}
		group, _, _ = strings.Cut(group, "/")
		return groups[group]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := r.URL; strings.HasSuffix(u.Path, "/") && own(u.Path) {
			u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
		}
		next.ServeHTTP(w, r)
	})
}

// roundabout reports whether a path has empty or dot segments, for which
// net/http's router would redirect the client.
func roundabout(p string) bool { return path.Clean(p) != strings.TrimSuffix(p, "/") }
