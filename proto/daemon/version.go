package daemon

import (
	"k8s.io/apimachinery/pkg/version"

	"kctl/proto/release"
)

// Version is what /version and --version say.
func Version() version.Info { return release.Version() }
