package local

import (
	"errors"
	"testing"

	"kctl/kubelet/internal/filesystem"
	"kctl/kubelet/internal/filesystem/filesystemtest"
	"kctl/proto/core"
)

// A pod with a volume whose file system does not answer says so; it could not be deleted, and
// nobody was told why it did not start.
func TestASourceWhoseFileSystemIsSilent(t *testing.T) {
	source := t.TempDir()
	filesystemtest.MountSilent(t, source)
	if err := (Volume{Name: "v", Source: source}).SetUp(t.Context(), &core.Pod{}, t.TempDir()); !errors.Is(err, filesystem.ErrSilent) {
		t.Errorf("error %v", err)
	}
}
