package server

import (
	"net/http"
	"path"
	"strings"
)

// withoutSlash takes the slashes from the end of paths of the server's own
// resources, as upstream does. What is passed on to others keeps them: there
// they may mean something.
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

// roundabout tells whether a path has parts that lead nowhere or back, for which
// net/http's router would send the client elsewhere.
func roundabout(p string) bool { return path.Clean(p) != strings.TrimSuffix(p, "/") }
