package kubeconfig

import (
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/client-go/util/homedir"
)

// DiscoveryCache is the directory where what a server serves is remembered.
func (f *Flags) DiscoveryCache(server *url.URL) string {
	base := f.cacheDir
	if base == "" {
		base = filepath.Join(homedir.HomeDir(), ".kube", "cache")
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, server.Host+strings.TrimSuffix(server.Path, "/"))
	return filepath.Join(base, "discovery", name)
}
