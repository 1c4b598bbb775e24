package server

import (
	"context"
	"fmt"
	"os"

	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/housekeeping/leading"
	"kctl/apiserver/internal/signing"
)

// newHousekeeper makes the loops that maintain what every cluster needs, run by the
// server that leads.
func newHousekeeper(s *surface, presence *presence, certificate string) (*leading.Housekeeper, error) {
	loops, err := dependencies(s, certificate)
	if err != nil {
		return nil, err
	}
	return leading.New(leading.Options{
		Flags: s.options, Leases: s.objects.resources.Leases, Loops: loops, Pods: s.objects.newPods,
		Others: []housekeeping.Loop{
			s.access.identities.Publisher(s.objects.resources.ConfigMaps).Run, s.objects.aggregator.Check,
			s.objects.followDefinitions, s.objects.flowControl().Maintain,
			housekeeping.NewServiceAddresses(loops), housekeeping.NewServicePorts(loops, s.objects.resources.Services), presence.keepOwnService,
		},
	})
}

// keepHouse runs them once what every cluster has is stored.
func (s *Server) keepHouse(ctx context.Context) error {
	if !wait(ctx, s.bootstrapped) {
		return ctx.Err()
	}
	return s.housekeeper.Run(ctx, s.stopping)
}

// dependencies are what the housekeeping loops need.
func dependencies(s *surface, certificate string) (housekeeping.Dependencies, error) {
	file := s.options.RootCAFile
	if file == "" {
		file = certificate
	}
	rootCA, err := os.ReadFile(file)
	if err != nil {
		return housekeeping.Dependencies{}, fmt.Errorf("root certificate authority: %w", err)
	}
	d := housekeeping.Dependencies{
		Resources: s.api.builtinStores(), DynamicResources: s.objects.definitions, AggregatedServers: s.objects.aggregator, Pods: s.access.pods,
		QuotaUsage: s.policy.admission.QuotaUsage,
		RootCA:     rootCA, LegacyTokenPeriod: s.options.LegacyTokenPeriod, NodeGrace: s.options.NodeMonitorGrace,
		MaxTerminatedPods: s.options.MaxTerminatedPods,
		Authorizer:        s.access.authorizer, Documents: s.documents.Document,
		Metrics: s.metrics, Queues: housekeeping.NewQueues(s.metrics, s.clock),
		Clock: s.clock, Logger: s.logger,
	}
	if s.access.identities.Issuer != nil { // not an interface that holds nil
		d.AccountTokens = s.access.identities.Issuer
	}
	if c := s.options.ClusterSigning; c.CertFile != "" {
		d.Signing = &signing.Authority{CertFile: c.CertFile, KeyFile: c.KeyFile, Longest: c.Duration}
		if err := d.Signing.Validate(); err != nil {
			return d, err
		}
	}
	if d.PodCIDRs, err = s.options.NodeRanges.Ranges(); err != nil {
		return d, err
	}
	d.ServiceRanges, _, err = s.options.ServiceRanges()
	return d, err
}
