package kubelet

import (
	"go.uber.org/zap"

	"kctl/kubelet/internal/allocation/checkpoint"
)

// restoreGrants takes over what an earlier kubelet granted to pods. Where it can't be read, the
// pods' statuses tell.
func (k *Kubelet) restoreGrants() {
	if k.hollow != nil {
		return
	}
	k.grants = &checkpoint.Keeper{Dir: k.config.RootDir, Manager: k.allocations, Clock: k.clock, Logger: k.logger}
	if err := k.grants.Load(); err != nil {
		k.logger.Warn("what an earlier kubelet granted to pods is not known", zap.Error(err))
	}
}

// recordGrants records what pods were granted, and what they have, at once.
func (k *Kubelet) recordGrants() {
	if k.grants == nil {
		return
	}
	if err := k.grants.Save(); err != nil {
		k.logger.Warn("what pods were granted could not be recorded", zap.Error(err))
	}
}
