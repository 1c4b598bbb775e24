package kubelet

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/userns"
	"kctl/kubelet/internal/volume"
)

// makeUserNamespaces finds out which of the host's ids are for pods, and which
// of these are already in use.
func (k *Kubelet) makeUserNamespaces(ctx context.Context) error {
	ids, err := userns.Configured(ctx)
	if err != nil {
		return err
	}
	if err := ids.Check(k.config.IDsPerPod, int64(k.config.MaxPods)); err != nil {
		return err
	}
	k.userIDs, err = userns.New(userns.Options{
		PodsDir: podfiles.PodsDir(k.config.RootDir), IDs: ids, PerPod: k.config.IDsPerPod, Logger: k.logger,
	})
	return err
}

func (k *Kubelet) userIDsOf(pod types.UID) (first, count uint32, err error) {
	ids, err := k.userIDs.Allocate(pod)
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
