package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/networking"
	"kctl/proto/core"
	"kctl/proto/events"
)

// ownServiceEvery is how often the service kubernetes and the range of its
// address are checked, and made again if they were deleted; upstream's.
const ownServiceEvery = 10 * time.Second

// bootstrapService stores the service range that the flags name, and the
// service kubernetes with its first address.
func (p *presence) bootstrapService(ctx context.Context) error {
	own, _, err := p.options.ServiceRanges()
	if err != nil {
		return err
	}
	ranges := networking.Bootstrap(ctx, p.objects.resources.ServiceCIDRs, own, metav1.NewTime(p.clock.Now()))
	if ranges != nil && !errors.Is(ranges, networking.ErrDefaultServiceCIDRDiffers) {
		return ranges
	}
	return errors.Join(ranges, p.objects.resources.Services.Bootstrap(ctx, p.endpoint.port))
}

// forOperators reports whether an error of bootstrapService has to be solved by
// an operator: the cluster has other ranges than the flags say. A server can
// serve meanwhile.
func forOperators(err error) bool {
	return errors.Is(err, networking.ErrDefaultServiceCIDRDiffers) || apierrors.IsInvalid(err)
}

// keepOwnService makes what bootstrapService makes again whenever it is gone.
func (p *presence) keepOwnService(ctx context.Context) error {
	ticker := p.clock.NewTicker(ownServiceEvery)
	defer ticker.Stop()
	told := ""
	for {
		err := p.bootstrapService(ctx)
		switch {
		case err == nil:
			told = ""
		case ctx.Err() == nil && err.Error() != told:
			told = err.Error()
			p.logger.Warn("the service of the API servers is not as this server's flags say, trying again", zap.Error(err))
			if errors.Is(err, networking.ErrDefaultServiceCIDRDiffers) {
				p.tellOtherRanges(ctx, err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
	}
}

// tellOtherRanges records an event that the cluster's range is not this server's.
func (p *presence) tellOtherRanges(ctx context.Context, cause error) {
	ref := &core.ObjectReference{
		Kind: networking.ServiceCIDRResource.Kind, APIVersion: networking.ServiceCIDRResource.GVK().GroupVersion().String(),
		Name: networking.DefaultServiceCIDRName,
	}
	if known, err := registry.GetStored[*networkingv1.ServiceCIDR](ctx, p.objects.resources.ServiceCIDRs, "", ref.Name); err == nil {
		ref.UID = known.UID
	}
	event := events.New(ref, corev1.EventSource{Component: networking.DefaultServiceCIDRManager}, corev1.EventTypeWarning,
		"KubernetesDefaultServiceCIDRInconsistent", fmt.Sprint(cause), p.clock.Now())
	housekeeping.WriteEvent(ctx, p.objects.resources.Events, registry.ServerManager, event, p.logger)
}
