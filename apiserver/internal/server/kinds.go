package server

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/apiserver/internal/resources/networking"
)

// bootstrapKinds makes the objects that every cluster has of kinds that the
// server itself does not decide by.
func (s *Server) bootstrapKinds(ctx context.Context) error {
	addresses, _, err := s.options.ServiceRanges()
	if err != nil {
		return err
	}
	if err := networking.Bootstrap(ctx, s.resources.ServiceCIDRs, addresses, metav1.NewTime(s.clock.Now())); err != nil {
		return err
	}
	if err := s.trackTokens(ctx); err != nil {
		return err
	}
	return flowcontrol.Bootstrap(ctx, s.resources.FlowSchemas, s.resources.PriorityLevels)
}
