package kubelet

import (
	"go.uber.org/zap"

	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/allocation/checkpoint"
)

// grants keeps what pods were granted for the next kubelet.
type grants struct {
	*checkpoint.Keeper
	logger *zap.Logger
}

// restoreGrants takes over what an earlier kubelet granted to pods. Where it can't be read, the
// pods' statuses tell.
func (g *given) restoreGrants(allocations *allocation.Manager) *grants {
	if g.hollow != nil {
		return nil
	}
	kept := &grants{&checkpoint.Keeper{Dir: g.config.RootDir, Manager: allocations, Clock: g.clock, Logger: g.logger}, g.logger}
	if err := kept.Load(); err != nil {
		g.logger.Warn("what an earlier kubelet granted to pods is not known", zap.Error(err))
	}
	return kept
}

// record records what pods were granted, and what they have, at once.
func (g *grants) record() {
	if g == nil {
		return
	}
	if err := g.Save(); err != nil {
		g.logger.Warn("what pods were granted could not be recorded", zap.Error(err))
	}
}
