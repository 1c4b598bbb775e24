package server

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/resources/kubelet"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/server/admissioncontrol"
	"kctl/apiserver/internal/server/authentication"
	"kctl/apiserver/internal/server/authorization"
	"kctl/apiserver/internal/server/equivalent"
	"kctl/apiserver/internal/signing"
)

// assemble makes the rooms and introduces them to each other.
func (s *Server) assemble(certificate string) error {
	o := s.options
	addresses, ports, err := o.ServiceRanges()
	if err != nil {
		return err
	}
	s.resources = resources.New(s.registryOptions(),
		o.EventTTL, service.Ranges{Addresses: addresses, NodePorts: ports})
	s.definitions = s.customResources()
	if s.aggregator, err = s.newAggregator(); err != nil {
		return err
	}
	if s.identities, err = s.authentication(); err != nil {
		return err
	}
	if err := s.serveResources(s.identities.Issuer); err != nil {
		return err
	}
	s.pods = s.newPods()
	s.pods.OnChange(s.traceChange)
	rules := rbac.NewAuthorizer()
	s.rules = rbac.NewFollower(rules, rbac.Sources{
		Roles: s.resources.Roles, RoleBindings: s.resources.RoleBindings,
		ClusterRoles: s.resources.ClusterRoles, ClusterRoleBindings: s.resources.ClusterRoleBindings,
	}, s.clock, s.logger)
	if s.authorizer, err = s.authorization(rules); err != nil {
		return err
	}
	if s.auditor, err = s.newAuditor(); err != nil {
		return err
	}
	if s.admission, err = s.admissionControl(rules); err != nil {
		return err
	}
	if err := s.keepHouse(certificate); err != nil {
		return err
	}
	s.everyTerm = []housekeeping.Loop{s.identities.Publisher(s.resources.ConfigMaps).Run, s.aggregator.Check, s.followDefinitions}
	s.shareFairly()
	s.watchHealth()
	return nil
}

func (s *Server) authentication() (*authentication.Authentication, error) {
	a, err := authentication.New(authentication.Options{
		Flags: s.options, Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
		Objects: authentication.Objects{
			ServiceAccounts: s.resources.ServiceAccounts, Pods: s.resources.Pods, Secrets: s.resources.Secrets, Nodes: s.resources.Nodes, Logger: s.logger,
		},
	})
	if err == nil {
		s.files = append(s.files, a.Files...)
	}
	return a, err
}

func (s *Server) authorization(rules *rbac.Authorizer) (authz.Union, error) {
	union, files, err := authorization.New(authorization.Options{
		Flags: s.options, Rules: rules, Pods: s.pods, PodsChanged: s.resources.Pods.Changed, Stored: s.storedNow, Ready: s.ready,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
	s.files = append(s.files, files...)
	return union, err
}

func (s *Server) admissionControl(rules *rbac.Authorizer) (*admissioncontrol.Control, error) {
	return admissioncontrol.New(admissioncontrol.Options{
		Flags: s.options, Resources: s.resources, Stores: s.stores, Forms: equivalent.New(s.served, s.definitions), Services: s.services(),
		Authorizer: s.authorizer, Rules: rules, Audited: s.auditor != nil,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
}

// serveResources makes what is served of the stores.
func (s *Server) serveResources(issuer *serviceaccount.Issuer) error {
	o := s.options
	types := make([]corev1.NodeAddressType, 0, len(o.KubeletPreferredAddressTypes))
	for _, t := range o.KubeletPreferredAddressTypes {
		types = append(types, corev1.NodeAddressType(t))
	}
	kubelets, err := kubelet.New(kubelet.Options{
		CertFile: o.KubeletClientCertificate, KeyFile: o.KubeletClientKey, CAFile: o.KubeletCertificateAuthority, AddressTypes: types,
		Timeout: o.KubeletTimeout,
	})
	if err != nil {
		return err
	}
	if issuer == nil { // not an interface that holds nil
		return s.choose(s.resources.Served(kubelets, nil))
	}
	return s.choose(s.resources.Served(kubelets, issuer))
}

// keepHouse makes the housekeeping loops.
func (s *Server) keepHouse(certificate string) error {
	file := s.options.RootCAFile
	if file == "" {
		file = certificate
	}
	rootCA, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("root certificate authority: %w", err)
	}
	d := housekeeping.Dependencies{NodeGrace: s.options.NodeMonitorGrace, LegacyTokenPeriod: s.options.LegacyTokenPeriod, Pods: s.pods, QuotaUsage: s.admission.QuotaUsage, RootCA: rootCA, Metrics: s.metrics, Clock: s.clock, Logger: s.logger}
	if err := s.signTokensAndCertificates(&d); err != nil {
		return err
	}
	if d.PodRanges, err = s.options.NodeRanges.Ranges(); err != nil {
		return err
	}
	if d.ServiceRanges, _, err = s.options.ServiceRanges(); err != nil {
		return err
	}
	d.Resources, d.More, d.Others = s.builtinStores(), s.definitions, s.aggregator
	s.house = d
	s.firstTerm, err = housekeeping.New(d, s.options.Controller)
	return err
}

// signTokensAndCertificates gives the housekeeping loops what they sign with.
func (s *Server) signTokensAndCertificates(d *housekeeping.Dependencies) error {
	d.Authorizer = s.authorizer
	if s.identities.Issuer != nil {
		d.AccountTokens = s.identities.Issuer
	}
	if c := s.options.ClusterSigning; c.CertFile != "" {
		d.Signing = &signing.Authority{CertFile: c.CertFile, KeyFile: c.KeyFile, Longest: c.Duration}
		return d.Signing.Validate()
	}
	return nil
}

func (s *Server) newPods() *facts.Mirror[facts.Pod] {
	return facts.NewMirror(s.resources.Pods, facts.PodOf, facts.Options[facts.Pod]{Index: facts.PodNode}, s.clock, s.logger)
}
