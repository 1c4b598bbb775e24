package projected

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/volume/keys"
	"kctl/proto/core"
)

type issued struct{}

func (issued) PodCertificate(context.Context, *core.Pod, *corev1.PodCertificateProjection) (key, chain []byte, err error) {
	return []byte("key\n"), []byte("chain\n"), nil
}

func TestPodCertificates(t *testing.T) {
	pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))}}}}}
	for _, source := range []corev1.PodCertificateProjection{
		{CredentialBundlePath: "bundle"}, {KeyPath: "key", CertificateChainPath: "chain"}, {CredentialBundlePath: "bundle", KeyPath: "key"},
	} {
		payload, err := podCertificate(t.Context(), issued{}, pod, &source, keys.Defaults{Mode: 0o644})
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"bundle": "key\nchain\n", "key": "key\n", "chain": "chain\n"} {
			asked := path == source.CredentialBundlePath || path == source.KeyPath || path == source.CertificateChainPath
			file, there := payload[path]
			if there != asked || there && (string(file.Data) != want || file.Mode != 0o600 || file.User == nil || *file.User != 7) {
				t.Errorf("%+v: %s is %+v", source, path, file)
			}
		}
	}
}
