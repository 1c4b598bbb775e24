package kubelet

import (
	"context"
	"fmt"
	"net"
	"slices"

	"kctl/kubelet/internal/certificate"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// credentials is where the API server is, and our credentials for it. Without a
// valid certificate of our own, we first get one, however long that takes.
func (k *Kubelet) credentials(ctx context.Context) (*rest.Config, error) {
	if k.config.BootstrapKubeconfig != "" {
		daemon.Waiting("a client certificate from the API server", k.logger)
		if err := certificate.Bootstrap(ctx, k.config.Kubeconfig, k.config.BootstrapKubeconfig, k.certificates()); err != nil {
			return nil, err
		}
	}
	cfg, err := rest.LoadKubeconfig(k.config.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	if k.config.RotateCertificates {
		if err := certificate.Adopt(cfg, k.certificates()); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// certificates is how we get our client certificate.
func (k *Kubelet) certificates() certificate.Options {
	return certificate.Options{
		Purpose: certificate.Client, Subject: pki.Subject{CommonName: core.UserNodePrefix + k.nodeName, Organization: []string{core.GroupNodes}},
		Dir: k.config.CertDir, Clock: k.clock, Logger: k.logger,
	}
}

// servingCertificates is how we get our serving certificate.
func (k *Kubelet) servingCertificates() certificate.Options {
	o := k.certificates()
	o.Purpose = certificate.Serving
	o.Subject.Server, o.Subject.DNSNames, o.Subject.IPs = true, []string{k.nodeName}, k.servingIPs()
	return o
}

// servingIPs are the addresses that others reach us by.
func (k *Kubelet) servingIPs() []net.IP {
	var ips []net.IP
	for _, address := range append([]string{k.config.Address}, k.hostIPs...) {
		ip := net.ParseIP(address)
		if !ip.IsUnspecified() && !slices.ContainsFunc(ips, ip.Equal) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// runRotators keeps our certificates valid.
func (k *Kubelet) runRotators(run func(name string, f func(context.Context) error)) {
	if k.config.RotateCertificates {
		rotator := certificate.Rotator{Options: k.certificates(), Client: k.client, Rotated: k.client.Reconnect}
		rotator.Register(k.registry)
		run("client certificate", rotator.Run)
	}
	if k.config.ServerTLSBootstrap {
		rotator := certificate.Rotator{Options: k.servingCertificates(), Client: k.client}
		rotator.Register(k.registry)
		run("serving certificate", rotator.Run)
	}
}
