package projected

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/keys"
	"kctl/proto/core"
)

// PodCertificates gets a pod's private keys and the certificates for them, as
// PEM.
type PodCertificates interface {
	PodCertificate(ctx context.Context, pod *core.Pod, source *corev1.PodCertificateProjection) (key, chain []byte, err error)
}

// podCertificate is a key and its certificates, in one file, in two, or both.
func podCertificate(ctx context.Context, get PodCertificates, pod *core.Pod, source *corev1.PodCertificateProjection,
	d keys.Defaults) (atomic.Payload, error) {
	key, chain, err := get.PodCertificate(ctx, pod, source)
	if err != nil {
		return nil, err
	}
	payload := atomic.Payload{}
	for path, content := range map[string][]byte{
		source.CredentialBundlePath: slices.Concat(key, chain), source.KeyPath: key, source.CertificateChainPath: chain,
	} {
		if path != "" {
			payload[path] = private(pod, d.File(content, nil, source.User))
		}
	}
	return payload, nil
}
