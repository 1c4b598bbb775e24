package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"kctl/proto/core"
	"kctl/proto/pki"
)

const (
	caLasts   = 10 * 365 * 24 * time.Hour
	certLasts = 365 * 24 * time.Hour
	// renewBefore: certificates that end sooner than this are made anew by up.
	renewBefore = 30 * 24 * time.Hour
)

// identities are the certificates that the authority signs, by file name.
func identities(nodeName string) map[string]pki.Subject {
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	return map[string]pki.Subject{
		"apiserver": {
			CommonName: "kube-apiserver", IPs: loopback, Server: true,
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		},
		// The API server shows this one to kubelets.
		"apiserver-kubelet-client": {CommonName: "kube-apiserver-kubelet-client", Organization: []string{core.GroupMasters}, Client: true},
		"admin":                    {CommonName: "kubernetes-admin", Organization: []string{core.GroupMasters}, Client: true},
		"scheduler":                {CommonName: core.UserScheduler, Client: true, Server: true, IPs: loopback, DNSNames: []string{"localhost"}},
		"controller-manager":       {CommonName: core.UserControllerManager, Client: true},
		"kubelet":                  {CommonName: core.UserNodePrefix + nodeName, Organization: []string{core.GroupNodes}, Client: true},
		"kubelet-server": {
			CommonName: core.UserNodePrefix + nodeName, Organization: []string{core.GroupNodes}, Server: true,
			IPs: loopback, DNSNames: []string{nodeName, "localhost"},
		},
	}
}

// users are the kubeconfigs that are written: file name to identity.
var users = []string{"admin", "scheduler", "controller-manager", "kubelet"}

// makePKI makes whatever of the certificates and keys is not there or ends soon.
func makePKI(l Layout, s *settings, now time.Time) error {
	if err := os.MkdirAll(l.path("pki"), 0o700); err != nil {
		return err
	}
	ca, err := authority(l, now)
	if err != nil {
		return err
	}
	for name, subject := range identities(s.NodeName) {
		certFile, keyFile := l.PKI(name+".crt"), l.PKI(name+".key")
		fresh, err := pki.Fresh(certFile, keyFile, now.Add(renewBefore))
		if err != nil {
			return err
		}
		if fresh {
			continue
		}
		pair, err := ca.Issue(subject, now, certLasts)
		if err != nil {
			return fmt.Errorf("certificate of %s: %w", name, err)
		}
		if err := pair.Save(certFile, keyFile); err != nil {
			return err
		}
	}
	return signingKey(l)
}

func authority(l Layout, now time.Time) (*pki.Pair, error) {
	certFile, keyFile := l.PKI("ca.crt"), l.PKI("ca.key")
	ca, err := pki.Load(certFile, keyFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return ca, err
	}
	if ca, err = pki.NewCA("kctl-ca", now, caLasts); err != nil {
		return nil, err
	}
	return ca, ca.Save(certFile, keyFile)
}

func signingKey(l Layout) error {
	if _, err := os.Stat(l.PKI("sa.key")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	private, public, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	if err := pki.WriteFile(l.PKI("sa.pub"), public); err != nil {
		return err
	}
	return pki.WriteFile(l.PKI("sa.key"), private)
}
