package kubelet

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/userns"
	"kctl/kubelet/internal/volume"
)

// newUserNamespaces finds out which of the host's ids are for pods, and which
// of these are already in use.
func (g *given) newUserNamespaces(ctx context.Context) (*userns.Manager, error) {
	ids, err := userns.Configured(ctx)
	if err != nil {
		return nil, err
	}
	if err := ids.Check(g.config.IDsPerPod, int64(g.config.MaxPods)); err != nil {
		return nil, err
	}
	return userns.New(userns.Options{
		PodsDir: podfiles.PodsDir(g.config.RootDir), IDs: ids, PerPod: g.config.IDsPerPod, Logger: g.logger,
	})
}

func userIDsOf(all *userns.Manager, pod types.UID) (first, count uint32, err error) {
	ids, err := all.Allocate(pod)
	return uint32(ids.First), uint32(ids.Count), err
}

// directories are the pods' own. A pod's ids are released together with its
// directory.
type directories struct {
	*volume.Manager
	ids *userns.Manager
}

// RemovePodDir is volume.Manager's.
func (d directories) RemovePodDir(ctx context.Context, uid types.UID) error {
	if err := d.ids.Release(uid); err != nil {
		return err
	}
	return d.Manager.RemovePodDir(ctx, uid)
}
