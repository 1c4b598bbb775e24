package access

import (
	"testing"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
)

// cluster is a running server with the helpers of this room's tests.
type cluster struct{ *servertest.Cluster }

func start(t *testing.T, adjust ...func(*config.Options)) *cluster {
	t.Helper()
	return &cluster{servertest.Start(t, adjust...)}
}
