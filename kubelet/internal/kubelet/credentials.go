package kubelet

import (
	"context"
	"fmt"

	"kctl/kubelet/internal/certificate"
	"kctl/proto/rest"
)

// credentials is where the API server is and who we are to it. Without a valid
// certificate of our own we first get one, however long that takes.
func (k *Kubelet) credentials(ctx context.Context) (*rest.Config, error) {
	if k.config.BootstrapKubeconfig != "" {
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

func (k *Kubelet) certificates() certificate.Options {
	return certificate.Options{NodeName: k.nodeName, Dir: k.config.CertDir, Clock: k.clock, Logger: k.logger}
}
