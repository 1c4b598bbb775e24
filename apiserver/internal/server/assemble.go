package server

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	admissionchain "kctl/apiserver/internal/admission/chain"
	"kctl/apiserver/internal/admission/match/equivalent"
	authnchain "kctl/apiserver/internal/authn/chain"
	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/authz"
	authzchain "kctl/apiserver/internal/authz/chain"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/customresources/validationrules"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/storage/measured"
	"kctl/apiserver/internal/trace"
	"kctl/proto/daemon"
)

// assemble makes the server's parts and connects them.
func (s *Server) assemble(certificate string) error {
	o := s.options
	addresses, ports, err := o.ServiceRanges()
	if err != nil {
		return err
	}
	s.resources = resources.New(s.registryOptions(),
		o.EventTTL, service.Ranges{Addresses: addresses, NodePorts: ports})
	s.definitions = s.newDefinitions()
	s.metrics.MustRegister(s.heldBack(), resources.CacheMetrics{Builtin: s.resources, Custom: s.definitions.CacheStats}, s.resources.Services)
	s.metrics.MustRegister(validationrules.Metrics()...)
	s.metrics.MustRegister(daemon.Features(nil)...)
	s.meter, s.encodings = handlers.NewMeter(s.metrics), handlers.NewEncodings()
	if s.aggregator, err = s.newAggregator(); err != nil {
		return err
	}
	if s.identities, err = s.newAuthentication(); err != nil {
		return err
	}
	if err := s.serveResources(s.identities.Issuer); err != nil {
		return err
	}
	s.exchange = trace.NewExchange(s.ring, measured.Of(messageResource, s.backend.Storage), o.EtcdPrefix+trace.Prefix, s.clock, s.logger.Named("relay"))
	s.pods = s.newPods()
	s.pods.OnChange(s.traceChange)
	roles := rbac.NewAuthorizer()
	s.rules = rbac.NewFollower(roles, rbac.Sources{
		Roles: s.resources.Roles, RoleBindings: s.resources.RoleBindings,
		ClusterRoles: s.resources.ClusterRoles, ClusterRoleBindings: s.resources.ClusterRoleBindings,
	}, s.clock, s.logger)
	if s.authorizer, err = s.newAuthorizer(roles); err != nil {
		return err
	}
	if s.auditor, err = s.newAuditor(); err != nil {
		return err
	}
	if s.admission, err = s.newAdmissionControl(roles); err != nil {
		return err
	}
	s.files = append(s.files, s.admission.Files...)
	s.fairness = s.newShare()
	if s.housekeeper, err = s.newHousekeeper(certificate); err != nil {
		return err
	}
	s.watchHealth()
	return nil
}

func (s *Server) newAuthentication() (*authnchain.Authentication, error) {
	a, err := authnchain.New(authnchain.Options{
		Flags: s.options, Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
		Objects: authnchain.Objects{
			ServiceAccounts: s.resources.ServiceAccounts, Pods: s.resources.Pods, Secrets: s.resources.Secrets, Nodes: s.resources.Nodes, Logger: s.logger,
		},
	})
	if err == nil {
		s.files = append(s.files, a.Files...)
	}
	return a, err
}

func (s *Server) newAuthorizer(roles *rbac.Authorizer) (authz.Union, error) {
	union, files, err := authzchain.New(authzchain.Options{
		Flags: s.options, Rules: roles, Pods: s.pods, PodsChanged: s.resources.Pods.LastChangeRevision, Stored: s.storedNow, Ready: s.ready,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
	s.files = append(s.files, files...)
	return union, err
}

func (s *Server) newAdmissionControl(roles *rbac.Authorizer) (*admissionchain.Control, error) {
	return admissionchain.New(admissionchain.Options{
		Flags: s.options, Resources: s.resources, Stores: s.stores, Forms: equivalent.New(s.served, s.definitions), Webhooks: s.webhooks(),
		Authorizer: s.authorizer, Rules: roles, Audited: s.auditor != nil,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
}

// serveResources builds the served resources from the stores.
func (s *Server) serveResources(issuer *serviceaccount.Issuer) error {
	o := s.options
	types := make([]corev1.NodeAddressType, 0, len(o.KubeletPreferredAddressTypes))
	for _, t := range o.KubeletPreferredAddressTypes {
		types = append(types, corev1.NodeAddressType(t))
	}
	kubelets, err := kubeletclient.New(kubeletclient.Options{
		CertFile: o.KubeletClientCertificate, KeyFile: o.KubeletClientKey, CAFile: o.KubeletCertificateAuthority, AddressTypes: types,
		Timeout: o.KubeletTimeout, Logger: s.logger.Named("kubelets"),
	})
	if err != nil {
		return err
	}
	if issuer == nil { // not an interface that holds nil
		return s.choose(s.resources.Served(kubelets, nil))
	}
	return s.choose(s.resources.Served(kubelets, issuer))
}

func (s *Server) newPods() *informer.Informer[informer.Pod] {
	return informer.New(s.resources.Pods, informer.PodOf, informer.Options[informer.Pod]{Index: informer.PodNode}, s.clock, s.logger)
}

// heldBack counts the resources that are held back (checkStorage names them).
func (s *Server) heldBack() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_storage_held_back_resources",
		Help: "Number of resources that can be neither listed nor watched, because something stored of them cannot be read.",
	}, func() float64 { return float64(len(s.resources.HeldBack())) })
}
