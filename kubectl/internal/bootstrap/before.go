package bootstrap

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// hasJoined says whether the kubelet has a valid certificate.
func (n Node) hasJoined(now time.Time) (bool, error) {
	certificate, err := n.certificate()
	return certificate != nil && certificate.NotAfter.After(now), err
}

// certificate is the kubelet's for the API server; nil if there is none.
func (n Node) certificate() (*x509.Certificate, error) {
	config, err := rest.LoadKubeconfig(n.Kubeconfig())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pair := &pki.Pair{Cert: config.CertData, Key: config.KeyData}
	if len(config.CertData) == 0 {
		pair, err = pki.Load(config.CertFile, config.KeyFile)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	tls, err := pair.TLS()
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s: %w", n.Kubeconfig(), err)
	}
	return tls.Leaf, nil
}

// keepName makes the node's name the one that it has joined by, if the user gives no other: with
// its certificate, the API server refuses a kubelet of any other name.
func (o *Options) keepName(named string) error {
	certificate, err := o.certificate()
	if err != nil || certificate == nil {
		return err
	}
	name, isNode := strings.CutPrefix(certificate.Subject.CommonName, core.UserNodePrefix)
	switch {
	case !isNode:
		return nil
	case named != "" && named != name:
		return fmt.Errorf("this machine has joined as node %s, which differs from --node-name=%s: `kctl reset` makes it leave first", name, named)
	}
	o.NodeName = name
	return nil
}
